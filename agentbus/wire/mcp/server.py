"""The conversation with one client: requests in, events out, answers in any order.

A tool call lives from its `ToolCall` event until `settle` (its answer was written) or `abandon`
(none was or will be). Until then a cancellation of it comes out as `Cancelled`. Calls are numbered
by us: a client may use an id again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from agentbus.errors import AgentbusError, InvalidArgument
from agentbus.wire.error_codes import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, to_data
from agentbus.wire.lines import LineDecoder
from agentbus.wire.mcp import responses
from agentbus.wire.mcp.batches import Whole
from agentbus.wire.mcp.catalogue import Tool
from agentbus.wire.mcp.open_calls import OpenCalls
from agentbus.wire.mcp.requests import (
    Batch,
    Garbled,
    Message,
    Notification,
    Refusal,
    Request,
    RequestId,
    is_id,
    read_line,
    read_value,
)
from agentbus.wire.mcp.responses import ServerInfo
from agentbus.wire.mcp.revisions import LATEST_HANDSHAKE, Revision, modern, negotiate

MAX_LINE: Final = 8 * 1024 * 1024
"""Bytes of a line from the client, its LF included."""

MAX_CALLS: Final = 1024
"""Tool calls that may be open at a time."""

MAX_LISTENERS: Final = 64

INTERNAL_ERROR: Final = -32603


class Line(msgspec.Struct, frozen=True):
    """Something to write; once its last byte is out, the answers to `calls` are delivered."""

    data: bytes
    calls: tuple[int, ...] = ()


class Say(msgspec.Struct, frozen=True):
    """Write this."""

    line: Line


class ToolCall(msgspec.Struct, frozen=True):
    """Somebody calls a tool; `call` names it in `McpServer.answer`.

    `client` is the name that the client gave itself, in this request or in its handshake.
    """

    call: int
    name: str
    arguments: dict[str, Any]
    meta: dict[str, Any]
    client: str | None


class Cancelled(msgspec.Struct, frozen=True):
    """The client does not want the answer any more."""

    call: int


class Greeted(msgspec.Struct, frozen=True):
    """A client told its name, without calling a tool yet."""

    client: str | None


Event = Say | ToolCall | Cancelled | Greeted


class McpServer:
    """One per stdio connection."""

    def __init__(self, info: ServerInfo, tools: Sequence[Tool]) -> None:
        self._info = info
        self._tools = list(tools)
        self._names = frozenset(tool.name for tool in tools)
        self._lines = LineDecoder(MAX_LINE)
        self._revision = LATEST_HANDSHAKE
        self._client: str | None = None
        self._calls = OpenCalls()
        self._listeners: dict[RequestId, None] = {}

    # what the client sends

    def feed(self, data: bytes) -> list[Event]:
        """What the client wants, in the order of its lines."""
        events: list[Event] = []
        for line in self._lines.feed(data):
            self._take(read_line(line), None, events)
        return events

    def _take(self, message: Message, batch: int | None, events: list[Event]) -> None:
        match message:
            case None:
                pass
            case Request():
                self._request(message, batch, events)
            case Notification():
                self._notification(message, events)
            case Refusal():
                reply = responses.error(message.id, message.code, message.message, message.data)
                self._say(reply, batch, events)
            case Garbled():
                self._garbled(message, batch, events)
            case Batch():
                self._batch(message, events)

    def _batch(self, batch: Batch, events: list[Event]) -> None:
        refusal = self._refuse_batch(batch)
        if refusal is not None:
            self._say(responses.error(None, INVALID_REQUEST, refusal), None, events)
            return
        number = self._calls.batches.open()
        for member in batch.members:
            message = read_value(member)
            if isinstance(message, Request) and (
                message.method == "initialize" or message.revision is not None
            ):
                message = Refusal(message.id, INVALID_REQUEST, "not allowed in a batch")
            self._take(message, number, events)
        self._emit(self._calls.batches.close(number), events)

    def _refuse_batch(self, batch: Batch) -> str | None:
        if not self._revision.batches:
            return "batches exist in revision 2025-03-26 alone"
        return None if batch.members else "a batch is not empty"

    def _notification(self, message: Notification, events: list[Event]) -> None:
        if message.method != "notifications/cancelled":
            return
        identifier = message.params.get("requestId")
        if not is_id(identifier):
            return
        self._listeners.pop(identifier, None)
        call = self._calls.find(identifier)
        if call is not None:
            events.append(Cancelled(call))

    def _request(self, request: Request, batch: int | None, events: list[Event]) -> None:
        if self._calls.find(request.id) is not None or request.id in self._listeners:
            reply = responses.error(request.id, INVALID_REQUEST, "a request with this id is open")
            self._say(reply, batch, events)
        elif request.method == "tools/call":
            self._call(request, batch, events)
        elif request.method == "subscriptions/listen":
            self._listen(request, events)
        else:
            if request.client is not None:
                events.append(Greeted(request.client))
            self._say(self._reply(request), batch, events)

    def _reply(self, request: Request) -> bytes:
        """The answer to a request that can be answered at once."""
        revision = request.revision or self._revision
        match (request.method, revision.modern):
            case ("initialize", _):
                return self._initialize(request)
            case ("ping", False):
                return responses.response(request.id, responses.empty(self._info, revision))
            case ("tools/list", _):
                return self._list_tools(request, revision)
            case ("server/discover", True):
                return responses.response(request.id, responses.discovered(self._info))
            case _:
                text = f"there is no method {request.method[:100]} in revision {revision.name}"
                return responses.error(request.id, METHOD_NOT_FOUND, text)

    def _initialize(self, request: Request) -> bytes:
        requested = request.params.get("protocolVersion")
        if not isinstance(requested, str):
            return responses.error(request.id, INVALID_PARAMS, "protocolVersion is a string")
        self._revision = negotiate(requested)
        self._client = request.client
        return responses.response(request.id, responses.initialized(self._info, self._revision))

    def _list_tools(self, request: Request, revision: Revision) -> bytes:
        if request.params.get("cursor") is not None:
            return responses.error(
                request.id, INVALID_PARAMS, "there is one page; leave cursor out"
            )
        return responses.response(
            request.id, responses.tool_list(self._info, self._tools, revision)
        )

    def _listen(self, request: Request, events: list[Event]) -> None:
        if not isinstance(request.params.get("notifications"), dict):
            reply = responses.error(request.id, INVALID_PARAMS, "notifications is an object")
        elif len(self._listeners) >= MAX_LISTENERS:
            reply = responses.error(request.id, INTERNAL_ERROR, "too many open subscriptions")
        else:
            self._listeners[request.id] = None
            reply = responses.listening(request.id)
        self._say(reply, None, events)

    def _call(self, request: Request, batch: int | None, events: list[Event]) -> None:
        refusal = self._refuse_call(request.params)
        if refusal is not None:
            self._say(responses.error(request.id, INVALID_PARAMS, refusal), batch, events)
            return
        client = request.client if request.revision is not None else self._client
        call = self._calls.open(request.id, request.revision or self._revision, batch)
        arguments = request.params.get("arguments") or {}
        events.append(ToolCall(call, request.params["name"], arguments, request.meta, client))

    def _refuse_call(self, params: dict[str, Any]) -> str | None:
        name = params.get("name")
        if not isinstance(name, str):
            return "name is the name of a tool"
        if name not in self._names:
            known = ", ".join(tool.name for tool in self._tools)
            return f"there is no tool {name[:100]}; there are {known}"
        if not isinstance(params.get("arguments", {}), dict | None):
            return "arguments is an object"
        if len(self._calls) >= MAX_CALLS:
            return f"{MAX_CALLS} tool calls are open; await answers first"
        return None

    def _garbled(self, garbled: Garbled, batch: int | None, events: list[Event]) -> None:
        revision = modern(garbled.revision or "") or self._revision
        failure = InvalidArgument(
            f"the arguments are no JSON that a message can carry: {garbled.problem}; send whole "
            "Unicode characters (no lone surrogates) and finite numbers"
        )
        result = responses.tool_result(self._info, revision, encode_failure(failure), failed=True)
        self._say(responses.response(garbled.id, result), batch, events)

    def _say(self, reply: bytes, batch: int | None, events: list[Event]) -> None:
        if batch is None:
            self._emit((reply, ()), events)
        else:
            self._calls.batches.add(batch, reply)

    @staticmethod
    def _emit(whole: Whole | None, events: list[Event]) -> None:
        line = _line(whole)
        if line is not None:
            events.append(Say(line))

    # what the tools say

    def answer(self, call: int, structured: bytes) -> Line | None:
        """The result of a call, as a JSON object; None while a batch waits for its other calls."""
        return self._answer(call, structured, failed=False)

    def fail(self, call: int, error: AgentbusError) -> Line | None:
        """The result of a call that did not succeed; None as in `answer`."""
        return self._answer(call, encode_failure(error), failed=True)

    def _answer(self, call: int, structured: bytes, *, failed: bool) -> Line | None:
        revision = self._calls.revision(call)
        result = responses.tool_result(self._info, revision, structured, failed=failed)
        return _line(self._calls.answer(call, result))

    def abandon(self, call: int) -> Line | None:
        """A cancelled call: of its answer, if there was one, no byte was or will be written.

        Gives what is to be written in place of it, where it was in a batch with others.
        """
        return _line(self._calls.drop(call))

    def settle(self, calls: Iterable[int]) -> None:
        """The answers to these calls have been written."""
        self._calls.settle(calls)

    def close(self) -> list[Line]:
        """What is left to be said when the server ends by itself: subscriptions end."""
        lines = [
            Line(responses.response(each, responses.listened(self._info, each)) + b"\n")
            for each in self._listeners
        ]
        self._listeners.clear()
        return lines


def encode_failure(error: AgentbusError) -> bytes:
    """The structured result of a tool call that failed."""
    return msgspec.json.encode({"error": to_data(error)})


def _line(whole: Whole | None) -> Line | None:
    return None if whole is None else Line(whole[0] + b"\n", whole[1])
