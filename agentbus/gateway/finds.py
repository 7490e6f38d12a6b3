"""Single messages and memories, looked up in the database: it knows what was just accepted, and
by their ids alone."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from agentbus.errors import AgentbusError, NotFound, Unavailable
from agentbus.gateway import accept
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Call, live
from agentbus.gateway.events import Find, Found
from agentbus.gateway.outbox import Outbox
from agentbus.wire.error_codes import from_failure
from agentbus.wire.rpc import MemoryParams, MemoryResult, Params, ReadParams, ReadResult

OnFound = Callable[[bytes | AgentbusError], None]


class Finds:
    """Look-ups under way."""

    def __init__(self, out: Outbox) -> None:
        self._out = out
        self._waiting: dict[int, tuple[str, OnFound]] = {}

    def find(self, identity: str, then: OnFound, *, message: bool) -> None:
        """Has `then` called with the envelope, or with why there is none; `message` tells that any
        message's id will do, not only a memory's."""
        ref = self._out.ref()
        self._waiting[ref] = (identity, then)
        self._out.effects.append(Find(ref, identity, message))

    def found(self, event: Found) -> None:
        """The answer to one."""
        identity, then = self._waiting.pop(event.ref)
        if event.failure is not None:
            error = from_failure(event.failure)
            then(Unavailable(f"the database could not be read: {error.message}"))
        elif event.envelope is None:
            then(NotFound(f"there is no {identity!r} (any more); `search` finds what there is"))
        else:
            then(event.envelope)


class Reading:
    """The methods `memory.get` and `read`."""

    def __init__(self, out: Outbox, condition: Condition, finds: Finds) -> None:
        self._out = out
        self._condition = condition
        self._finds = finds

    def get(self, call: Call, params: MemoryParams) -> None:
        """A memory as it is now."""
        accept.name("memory_id", params.memory_id)
        self._find(call, params.attachment, params.memory_id, _memory, message=False)

    def read(self, call: Call, params: ReadParams) -> None:
        """A message; of a memory what it is now."""
        accept.name("message_id", params.message_id)
        self._find(call, params.attachment, params.message_id, _message, message=True)

    def _find(
        self,
        call: Call,
        attachment: str,
        identity: str,
        result: Callable[[bytes], Params],
        *,
        message: bool,
    ) -> None:
        self._condition.require_ready()
        live(call.connection, attachment)
        call.connection.begin_read()

        def then(found: bytes | AgentbusError) -> None:
            call.connection.reads -= 1
            if isinstance(found, bytes):
                self._out.answer(call, result(found))
            else:
                self._out.refuse(call, found)

        self._finds.find(identity, then, message=message)


def _memory(envelope: bytes) -> MemoryResult:
    return MemoryResult(message=msgspec.Raw(envelope))


def _message(envelope: bytes) -> ReadResult:
    return ReadResult(message=msgspec.Raw(envelope))


class _Placed(msgspec.Struct, frozen=True):
    channel: str


_placed = msgspec.json.Decoder(_Placed)


def channel_of(envelope: bytes) -> str:
    """The channel of a message."""
    return _placed.decode(envelope).channel
