"""JSON-RPC batches (revision 2025-03-26): one line in, one line out when all is answered."""

from __future__ import annotations

import msgspec

Whole = tuple[bytes, tuple[int, ...]]
"""A batch of replies, and the tool calls that it answers."""


class _Batch(msgspec.Struct):
    """`waiting` are the tool calls without an answer, `answered` those with one."""

    waiting: dict[int, None]
    answered: dict[int, bytes]
    replies: list[bytes]
    read: bool = False
    """All members of the request have been read."""


class Batches:
    """The batches whose answers have not been written; calls go by their numbers."""

    def __init__(self) -> None:
        self._open: dict[int, _Batch] = {}
        self._numbers = 0

    def open(self) -> int:
        """Begins a batch and names it."""
        self._numbers += 1
        self._open[self._numbers] = _Batch({}, {}, [])
        return self._numbers

    def add(self, batch: int, reply: bytes) -> None:
        """A member that was answered at once."""
        self._open[batch].replies.append(reply)

    def expect(self, batch: int, call: int) -> None:
        """A member that is a tool call."""
        self._open[batch].waiting[call] = None

    def close(self, batch: int) -> Whole | None:
        """All members were read; gives the line if nothing is waited for."""
        self._open[batch].read = True
        return self._finish(batch)

    def answer(self, batch: int, call: int, reply: bytes) -> Whole | None:
        """The answer to a tool call; gives the line when it is whole."""
        found = self._open[batch]
        del found.waiting[call]
        found.answered[call] = reply
        return self._finish(batch)

    def drop(self, batch: int, call: int) -> Whole | None:
        """There will be no answer to this call; gives the line without it if that makes it whole.

        Where the line had been given already, this one takes its place.
        """
        found = self._open[batch]
        found.waiting.pop(call, None)
        found.answered.pop(call, None)
        return self._finish(batch)

    def reopen(self, batch: int, call: int) -> None:
        """The answer to a call was taken back: the line waits for another one."""
        found = self._open[batch]
        del found.answered[call]
        found.waiting[call] = None

    def settle(self, batch: int, call: int) -> None:
        """The line with the answer to this call was written."""
        found = self._open.get(batch)
        if found is not None:
            found.answered.pop(call, None)
            if not found.answered and not found.waiting:
                del self._open[batch]

    def _finish(self, batch: int) -> Whole | None:
        found = self._open[batch]
        if found.waiting or not found.read:
            return None
        if not found.answered:
            del self._open[batch]
        replies = [*found.replies, *found.answered.values()]
        if not replies:
            return None
        return b"[" + b",".join(replies) + b"]", tuple(found.answered)
