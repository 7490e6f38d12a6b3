"""The methods of `wire.rpc`, and what happens to a line before and after them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentbus.errors import AgentbusError, InternalError, RateLimited
from agentbus.gateway import replies, requests
from agentbus.gateway.connections import Call, Connection, live
from agentbus.gateway.events import Broke
from agentbus.gateway.parts import Parts
from agentbus.gateway.stopping import Stopping
from agentbus.wire.lines import Overlong
from agentbus.wire.rpc import DeliveredParams, Empty, Params, Request

UNANSWERED: Final = 4096
"""Requests of one connection that may wait for their answers; reports are beside it."""

RETRY_MS: Final = 100

ANYBODY: Final = frozenset({"hello", "status", "stop", "reset"})
"""Methods that need no accepted greeting."""

ALWAYS: Final = frozenset({"heartbeat", "delivered"})
"""Methods that keep things going, and so pass however much is unanswered."""

RECEIVED: Final = frozenset({"send", "memory.edit", "memory.delete"})
"""Methods whose refusals are counted as rejected operations."""

Handler = Callable[[Call, Any], None]


class Methods:
    """Lines in, calls out."""

    def __init__(self, parts: Parts, stopping: Stopping) -> None:
        self._parts = parts
        self._stopping = stopping
        self._decoders = requests.decoders()
        self._handlers: dict[str, Handler] = {
            "hello": parts.greeter.hello,
            "register": parts.attachments.register,
            "release": parts.attachments.release,
            "heartbeat": parts.attachments.heartbeat,
            "renew": parts.attachments.renew,
            "channel.create": parts.subscriptions.create,
            "channel.list": parts.subscriptions.list,
            "subscribe": parts.subscriptions.subscribe,
            "unsubscribe": parts.subscriptions.unsubscribe,
            "send": parts.sending.send,
            "history": parts.history.history,
            "delivered": self._delivered,
            "memory.get": parts.reading.get,
            "memory.edit": parts.memories.edit,
            "memory.delete": parts.memories.delete,
            "memory.list": parts.history.memories,
            "search": parts.searching.search,
            "read": parts.reading.read,
            "inbox": parts.inbox.inbox,
            "discover": parts.directory.discover,
            "status": parts.status.status,
            "stop": self._stop,
            "reset": self._reset,
        }

    def line(self, connection: Connection, content: bytes | Overlong) -> None:
        """Answers it, or begins to."""
        try:
            request = requests.parse(content)
            identity = None if request.id is None else replies.request_id(request.id)
            params = self._params(connection, request, identity or replies.NO_ID)
        except requests.Fault as fault:
            self._parts.out.line(connection, fault.line)
            return
        size = memoryview(request.params).nbytes
        call = Call(connection, identity, size, self._parts.alarms.now)
        self._carry_out(request.method, call, params)

    def _params(self, connection: Connection, request: Request, identity: bytes) -> Params:
        decoder = self._decoders.get(request.method)
        if decoder is None:
            raise requests.no_method(identity, request.method)
        if not connection.greeted and request.method not in ANYBODY:
            raise requests.stranger(identity)
        try:
            return decoder.decode(request.params)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise requests.bad_params(identity, request.method, error) from None

    def _carry_out(self, method: str, call: Call, params: Any) -> None:
        call.connection.unanswered += 1
        try:
            if method not in ALWAYS:
                _require_patience(call.connection)
            self._handlers[method](call, params)
        except AgentbusError as error:
            self._parts.admission.rejected += method in RECEIVED
            self._parts.out.refuse(call, error)
        except Exception as error:  # noqa: BLE001 - one bad request must not end the others' bus
            self._parts.out.effects.append(Broke(method, error))
            self._parts.out.refuse(
                call, InternalError(f"{method} failed; the gateway's log has why")
            )

    def _delivered(self, call: Call, params: DeliveredParams) -> None:
        self._parts.reports.delivered(live(call.connection, params.attachment), call, params)

    def _stop(self, call: Call, _params: Empty) -> None:
        self._parts.out.answer(call, Empty())
        self._stopping.requested()

    def _reset(self, call: Call, _params: Empty) -> None:
        self._parts.out.answer(call, Empty())
        self._stopping.reset_requested()


def _require_patience(connection: Connection) -> None:
    if connection.unanswered > UNANSWERED:
        raise RateLimited(
            f"more than {UNANSWERED} requests of this connection wait for their answers",
            retry_after_ms=RETRY_MS,
        )
