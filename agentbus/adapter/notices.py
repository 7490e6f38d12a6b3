"""What the bus tells in passing: memories that were changed or deleted, warnings.

Notices are not stored anywhere, are acknowledged by nobody and end with the attachment. The queue
is bounded; when it overflows the oldest go, and how many went is told. What a later notice has
made obsolete keeps its place and loses its contents: nobody is shown a revision that is known to be
gone.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec

from agentbus.wire.rpc import NoticeNote

MAX_NOTICES: Final = 64
MAX_BYTES: Final = 4 * 1024 * 1024

LEAST_ROOM: Final = 1024
"""Bytes into which a notice may be cut beside messages."""

_encode: Final = msgspec.json.encode


class Notice(msgspec.Struct, eq=False):
    """`shown` is the object that the agent is shown, as JSON, without its member `message`."""

    shown: bytes
    memory: str | None = None
    message: bytes | None = None

    @property
    def size(self) -> int:
        """Bytes in a result, uncut."""
        message = 0 if self.message is None else len(self.message) + len(MESSAGE)
        return len(self.shown) + message + 1

    def fade(self) -> None:
        """What it says of its memory is obsolete."""
        if self.message is not None:
            self.message = None
            self.shown = self.shown[:-1] + b',"superseded":true}'


MESSAGE: Final = b',"message":'


class Told(msgspec.Struct, frozen=True, eq=False):
    """Notices taken for one result, and how many were dropped before."""

    notices: list[Notice]
    dropped: int = 0

    @property
    def size(self) -> int:
        """Bytes of them in a result, uncut."""
        return sum(notice.size for notice in self.notices)

    def holds(self, memory: str | None) -> bool:
        """Whether contents of that memory are in it."""
        return memory is not None and any(
            notice.message is not None and notice.memory == memory for notice in self.notices
        )


class Notices:
    """The queue of one attachment."""

    def __init__(self) -> None:
        self._queue: deque[Notice] = deque()
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def size(self) -> int:
        """Bytes of all of them."""
        return sum(notice.size for notice in self._queue)

    def add(self, note: NoticeNote) -> None:
        """The bus tells something."""
        self.supersede(note.memory_id)
        members = {
            "kind": note.kind,
            "channel": note.channel,
            "memory_id": note.memory_id,
            "revision": note.revision,
            "text": note.text,
        }
        shown = _encode({name: value for name, value in members.items() if value is not None})
        self._queue.append(Notice(shown, note.memory_id, bytes(note.message) or None))
        self._bound()

    def supersede(self, memory: str | None) -> None:
        """What is known of a memory is obsolete."""
        for notice in self._queue:
            if notice.memory == memory:
                notice.fade()

    def take(self, room: int, *, alone: bool) -> Told:
        """The next ones that fit into so many bytes; one that does not fit is taken to be cut,
        where it would come first and there is enough room for that, or nothing else to show."""
        taken: list[Notice] = []
        while self._queue:
            size = self._queue[0].size
            if size > room and (taken or not (alone or room >= LEAST_ROOM)):
                break
            room -= size
            taken.append(self._queue.popleft())
        dropped, self._dropped = self._dropped, 0
        return Told(taken, dropped)

    def restore(self, told: Told) -> None:
        """They were not and will not be shown: back to where they were."""
        later = {notice.memory for notice in self._queue}
        self._queue.extendleft(reversed(told.notices))
        self._dropped += told.dropped
        for notice in told.notices:
            if notice.memory in later:
                notice.fade()
        self._bound()

    def clear(self) -> None:
        """The attachment is over."""
        self._dropped += len(self._queue)
        self._queue.clear()

    def _bound(self) -> None:
        while len(self._queue) > MAX_NOTICES or (len(self._queue) > 1 and self.size > MAX_BYTES):
            self._queue.popleft()
            self._dropped += 1
