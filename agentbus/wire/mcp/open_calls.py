"""Tool calls between their request and the last byte of their answer."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from agentbus.wire.mcp import responses
from agentbus.wire.mcp.batches import Batches, Whole
from agentbus.wire.mcp.requests import RequestId
from agentbus.wire.mcp.revisions import Revision


class _Open(msgspec.Struct):
    id: RequestId
    revision: Revision
    batch: int | None


class OpenCalls:
    """By our numbers, and by the client's ids, each of which is open once at most."""

    def __init__(self) -> None:
        self._calls: dict[int, _Open] = {}
        self._ids: dict[RequestId, int] = {}
        self._numbers = 0
        self.batches = Batches()

    def __len__(self) -> int:
        return len(self._calls)

    def open(self, identifier: RequestId, revision: Revision, batch: int | None) -> int:
        """A new call; its number."""
        self._numbers += 1
        self._calls[self._numbers] = _Open(identifier, revision, batch)
        self._ids[identifier] = self._numbers
        if batch is not None:
            self.batches.expect(batch, self._numbers)
        return self._numbers

    def find(self, identifier: RequestId) -> int | None:
        """The open call with this id of the client's."""
        return self._ids.get(identifier)

    def revision(self, call: int) -> Revision:
        """What the answer to a call has to be written in."""
        return self._calls[call].revision

    def answer(self, call: int, result: bytes) -> Whole | None:
        """The response to write, None while a batch waits for its other calls."""
        found = self._calls[call]
        reply = responses.response(found.id, result)
        if found.batch is None:
            return reply, (call,)
        return self.batches.answer(found.batch, call, reply)

    def drop(self, call: int) -> Whole | None:
        """There is no answer; what is to be written without it, where it was in a batch."""
        found = self._forget(call)
        if found is None or found.batch is None:
            return None
        return self.batches.drop(found.batch, call)

    def settle(self, calls: Iterable[int]) -> None:
        """Their answers have been written."""
        for call in calls:
            found = self._forget(call)
            if found is not None and found.batch is not None:
                self.batches.settle(found.batch, call)

    def _forget(self, call: int) -> _Open | None:
        found = self._calls.pop(call, None)
        if found is not None:
            del self._ids[found.id]
        return found
