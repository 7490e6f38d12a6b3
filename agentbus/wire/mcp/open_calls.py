"""Calls of tools, and reads of resources, between request and the last byte of the answer."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from agentbus.wire.mcp.batches import Batches, Whole
from agentbus.wire.mcp.requests import RequestId
from agentbus.wire.mcp.revisions import Revision


class OpenCall(msgspec.Struct, frozen=True):
    """What its answer has to fit; `uri` is there where a resource is read."""

    id: RequestId
    revision: Revision
    batch: int | None
    uri: str | None = None


class OpenCalls:
    """By our numbers, and by the client's ids, each of which is open once at most."""

    def __init__(self) -> None:
        self._calls: dict[int, OpenCall] = {}
        self._ids: dict[RequestId, int] = {}
        self._numbers = 0
        self.batches = Batches()

    def __len__(self) -> int:
        return len(self._calls)

    def __getitem__(self, call: int) -> OpenCall:
        return self._calls[call]

    def open(self, call: OpenCall) -> int:
        """A new call; its number."""
        self._numbers += 1
        self._calls[self._numbers] = call
        self._ids[call.id] = self._numbers
        if call.batch is not None:
            self.batches.expect(call.batch, self._numbers)
        return self._numbers

    def find(self, identifier: RequestId) -> int | None:
        """The open call with this id of the client's."""
        return self._ids.get(identifier)

    def answer(self, call: int, reply: bytes) -> Whole | None:
        """The response to write, None while a batch waits for its other calls."""
        batch = self._calls[call].batch
        return (reply, (call,)) if batch is None else self.batches.answer(batch, call, reply)

    def reopen(self, call: int) -> None:
        """The answer was taken back, there will be another."""
        batch = self._calls[call].batch
        if batch is not None:
            self.batches.reopen(batch, call)

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

    def _forget(self, call: int) -> OpenCall | None:
        found = self._calls.pop(call, None)
        if found is not None:
            del self._ids[found.id]
        return found
