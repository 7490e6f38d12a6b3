"""The methods of `wire.rpc`, and what happens to a line before and after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

from agentbus.errors import AgentbusError, InternalError, RateLimited
from agentbus.gateway import replies, requests
from agentbus.gateway.connections import Call, Connection, live
from agentbus.gateway.events import Broke
from agentbus.gateway.parts import Parts
from agentbus.gateway.stopping import Stopping
from agentbus.wire.lines import Overlong
from agentbus.wire.rpc import DeliveredParams, Empty

UNANSWERED: Final = 4096
"""Requests of one connection that may wait for their answers; reports are beside it."""

RETRY_MS: Final = 100

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

    def lines(self, connection: Connection, contents: Sequence[bytes | Overlong]) -> None:
        """Answers them, or begins to."""
        now = self._parts.alarms.now
        for content in contents:
            try:
                if isinstance(content, Overlong):
                    raise requests.overlong(content)
                asked = requests.read(content, greeted=connection.greeted)
            except requests.Fault as fault:
                self._parts.out.line(connection, fault.line)
                continue
            identity = None if asked.id is None else replies.request_id(asked.id)
            call = Call(connection, identity, len(content), now)
            self._carry_out(asked.method, call, asked.params)

    def _carry_out(self, method: str, call: Call, params: Any) -> None:
        connection = call.connection
        connection.unanswered += 1
        try:
            if connection.unanswered > UNANSWERED and method not in ALWAYS:
                _refuse_more()
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


def _refuse_more() -> NoReturn:
    raise RateLimited(
        f"more than {UNANSWERED} requests of this connection wait for their answers",
        retry_after_ms=RETRY_MS,
    )
