"""The conversation with one client: requests in, events out, answers in any order.

A call (of a tool, or a read of a resource) lives from its event until `settle` (its answer was
written) or `abandon` (none was or will be). Until then a cancellation of it comes out as
`Cancelled`, and an answer that was taken back may be given anew after `reopen`. Calls are numbered
by us: a client may use an id again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeGuard

import msgspec

from agentbus.errors import AgentbusError, InvalidArgument
from agentbus.wire.error_codes import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, to_data
from agentbus.wire.lines import LineDecoder
from agentbus.wire.mcp import responses
from agentbus.wire.mcp.batches import Whole
from agentbus.wire.mcp.catalogue import Resource, Tool
from agentbus.wire.mcp.events import Cancelled, Event, Greeted, Line, ResourceRead, Say, ToolCall
from agentbus.wire.mcp.listeners import Listeners
from agentbus.wire.mcp.open_calls import OpenCall, OpenCalls
from agentbus.wire.mcp.requests import (
    Batch,
    Garbled,
    Message,
    Notification,
    Refusal,
    Request,
    is_id,
    read_line,
    read_value,
)
from agentbus.wire.mcp.responses import ServerInfo
from agentbus.wire.mcp.revisions import LATEST_HANDSHAKE, Revision, modern, negotiate

MAX_LINE: Final = 8 * 1024 * 1024
"""Bytes of a line from the client, its LF included."""

MAX_CALLS: Final = 1024
"""Calls that may be open at a time."""

TOO_MANY: Final = f"{MAX_CALLS} calls are open; await answers first"


class McpServer:
    """One per stdio connection."""

    def __init__(
        self, info: ServerInfo, tools: Sequence[Tool], resources: Sequence[Resource] = ()
    ) -> None:
        self._info = info
        self._tools = list(tools)
        self._names = frozenset(tool.name for tool in tools)
        self._resources = list(resources)
        self._uris = frozenset(resource.uri for resource in resources)
        self._lines = LineDecoder(MAX_LINE)
        self._revision = LATEST_HANDSHAKE
        self._client: str | None = None
        self._calls = OpenCalls()
        self._listeners = Listeners(self._uris)

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
        self._listeners.cancel(identifier)
        call = self._calls.find(identifier)
        if call is not None:
            events.append(Cancelled(call))

    def _request(self, request: Request, batch: int | None, events: list[Event]) -> None:
        if self._calls.find(request.id) is not None or request.id in self._listeners:
            reply = responses.error(request.id, INVALID_REQUEST, "a request with this id is open")
            self._say(reply, batch, events)
        elif request.method == "tools/call":
            self._call(request, batch, events)
        elif request.method == "resources/read":
            self._read(request, batch, events)
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
            case ("tools/list" | "resources/list" | "resources/templates/list", _):
                return self._list(request, revision)
            case ("resources/subscribe" | "resources/unsubscribe", False):
                return self._subscribe(request, revision)
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
        self._listeners.greeted()
        return responses.response(request.id, responses.initialized(self._info, self._revision))

    def _list(self, request: Request, revision: Revision) -> bytes:
        if request.params.get("cursor") is not None:
            return responses.error(
                request.id, INVALID_PARAMS, "there is one page; leave cursor out"
            )
        match request.method:
            case "tools/list":
                result = responses.tool_list(self._info, self._tools, revision)
            case "resources/list":
                result = responses.resource_list(self._info, self._resources, revision)
            case _:
                result = responses.template_list(self._info, revision)
        return responses.response(request.id, result)

    def _subscribe(self, request: Request, revision: Revision) -> bytes:
        uri = request.params.get("uri")
        if not self._is_resource(uri):
            return self._no_resource(request, revision)
        if request.method == "resources/subscribe":
            self._listeners.subscribe(uri)
        else:
            self._listeners.unsubscribe(uri)
        return responses.response(request.id, responses.empty(self._info, revision))

    def _is_resource(self, uri: Any) -> TypeGuard[str]:
        return isinstance(uri, str) and uri in self._uris

    def _no_resource(self, request: Request, revision: Revision) -> bytes:
        code = INVALID_PARAMS if revision.modern else responses.RESOURCE_NOT_FOUND
        known = ", ".join(sorted(self._uris)) or "none"
        return responses.error(request.id, code, f"there is no such resource; there is {known}")

    def _listen(self, request: Request, events: list[Event]) -> None:
        wanted = request.params.get("notifications")
        if not isinstance(wanted, dict):
            reply = responses.error(request.id, INVALID_PARAMS, "notifications is an object")
        elif self._listeners.full:
            code = responses.INTERNAL_ERROR
            reply = responses.error(request.id, code, "too many open subscriptions")
        else:
            reply = self._listeners.listen(request.id, wanted)
        self._say(reply, None, events)

    def _call(self, request: Request, batch: int | None, events: list[Event]) -> None:
        refusal = self._refuse_call(request.params)
        if refusal is not None:
            self._say(responses.error(request.id, INVALID_PARAMS, refusal), batch, events)
            return
        call = self._open(request, batch)
        arguments = request.params.get("arguments") or {}
        name = request.params["name"]
        events.append(ToolCall(call, name, arguments, request.meta, self._named(request)))

    def _read(self, request: Request, batch: int | None, events: list[Event]) -> None:
        uri = request.params.get("uri")
        if not self._is_resource(uri):
            reply = self._no_resource(request, request.revision or self._revision)
            self._say(reply, batch, events)
        elif len(self._calls) >= MAX_CALLS:
            self._say(responses.error(request.id, INVALID_PARAMS, TOO_MANY), batch, events)
        else:
            call = self._open(request, batch, uri)
            events.append(ResourceRead(call, uri, request.meta, self._named(request)))

    def _open(self, request: Request, batch: int | None, uri: str | None = None) -> int:
        revision = request.revision or self._revision
        return self._calls.open(OpenCall(request.id, revision, batch, uri))

    def _named(self, request: Request) -> str | None:
        return request.client if request.revision is not None else self._client

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
            return TOO_MANY
        return None

    def _garbled(self, garbled: Garbled, batch: int | None, events: list[Event]) -> None:
        revision = modern(garbled.revision or "") or self._revision
        failure = InvalidArgument(
            f"the arguments are no JSON that a message can carry: {garbled.problem}; send whole "
            "Unicode characters (no lone surrogates) and finite numbers"
        )
        result = responses.tool_result(self._info, revision, encode_failure(failure), failed=True)
        self._say(responses.response(garbled.id, *result), batch, events)

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

    # what they are answered

    def answer(self, call: int, structured: bytes) -> Line | None:
        """The result of a call, as a JSON object; None while a batch waits for its other calls."""
        found = self._calls[call]
        if found.uri is None:
            return self._result(call, found, structured, failed=False)
        result = responses.resource_contents(self._info, found.revision, found.uri, structured)
        return _line(self._calls.answer(call, responses.response(found.id, result)))

    def fail(self, call: int, error: AgentbusError) -> Line | None:
        """The result of a call that did not succeed; None as in `answer`."""
        found = self._calls[call]
        if found.uri is not None:
            return _line(self._calls.answer(call, responses.failure(found.id, error)))
        return self._result(call, found, encode_failure(error), failed=True)

    def _result(
        self, call: int, found: OpenCall, structured: bytes, *, failed: bool
    ) -> Line | None:
        result = responses.tool_result(self._info, found.revision, structured, failed=failed)
        if found.batch is None:
            return Line(responses.response(found.id, *result, end=b"\n"), (call,))
        return _line(self._calls.answer(call, responses.response(found.id, *result)))

    def reopen(self, call: int) -> None:
        """No byte of the answer was or will be written: the call waits for another one."""
        self._calls.reopen(call)

    def abandon(self, call: int) -> Line | None:
        """A cancelled call: of its answer, if there was one, no byte was or will be written.

        Gives what is to be written in place of it, where it was in a batch with others.
        """
        return _line(self._calls.drop(call))

    def settle(self, calls: Iterable[int]) -> None:
        """The answers to these calls have been written."""
        self._calls.settle(calls)

    # what they are told unasked

    def listens(self, uri: str) -> bool:
        """Whether the client wants to know of changes of a resource."""
        return self._listeners.listens(uri)

    def updated(self, uri: str) -> list[Line]:
        """Tells of a change whoever listens."""
        return [Line(each + b"\n") for each in self._listeners.updated(uri)]

    def close(self) -> list[Line]:
        """What is left to be said when the server ends by itself: subscriptions end."""
        return [Line(each + b"\n") for each in self._listeners.close(self._info)]


def encode_failure(error: AgentbusError) -> bytes:
    """The structured result of a tool call that failed."""
    return msgspec.json.encode({"error": to_data(error)})


def _line(whole: Whole | None) -> Line | None:
    return None if whole is None else Line(whole[0] + b"\n", whole[1])
