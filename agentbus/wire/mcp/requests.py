"""Reading what a client sends: lines to checked messages, and whom to answer when that fails.

Whatever cannot be read is `Refusal`, never an exception: a connection survives any line.
"""

from __future__ import annotations

from typing import Any, Final, TypeGuard

import msgspec

from agentbus.wire.error_codes import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from agentbus.wire.lines import Overlong
from agentbus.wire.mcp.revisions import SUPPORTED, Revision, modern
from agentbus.wire.mcp.salvage import salvage, salvage_ends

UNSUPPORTED_REVISION: Final = -32022
META_PREFIX: Final = "io.modelcontextprotocol/"
META_REVISION: Final = META_PREFIX + "protocolVersion"
META_CAPABILITIES: Final = META_PREFIX + "clientCapabilities"
META_CLIENT: Final = META_PREFIX + "clientInfo"
META_SUBSCRIPTION: Final = META_PREFIX + "subscriptionId"
META_SERVER: Final = META_PREFIX + "serverInfo"

MODERN_ONLY: Final = frozenset({"server/discover", "subscriptions/listen"})

RequestId = int | str


class Request(msgspec.Struct, frozen=True):
    """A request; `revision` is set where its own `_meta` names a supported one."""

    id: RequestId
    method: str
    params: dict[str, Any]
    revision: Revision | None = None

    @property
    def meta(self) -> dict[str, Any]:
        """`params._meta`, empty where there is none."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def client(self) -> str | None:
        """The client's name as this very request tells it."""
        modern = self.revision is not None
        info = self.meta.get(META_CLIENT) if modern else self.params.get("clientInfo")
        name = info.get("name") if isinstance(info, dict) else None
        return name if isinstance(name, str) else None


class Notification(msgspec.Struct, frozen=True):
    """A message that wants no answer."""

    method: str
    params: dict[str, Any]


class Refusal(msgspec.Struct, frozen=True):
    """A message that is answered with an error; `id` None where it could not be found."""

    id: RequestId | None
    code: int
    message: str
    data: Any = None


class Garbled(msgspec.Struct, frozen=True):
    """A `tools/call` that is no JSON a message could carry, such as a lone surrogate."""

    id: RequestId
    problem: str
    revision: str | None
    """As far as its `_meta` could be read."""


class Batch(msgspec.Struct, frozen=True):
    """A JSON-RPC batch, its members unread."""

    members: list[Any]


Message = Request | Notification | Refusal | Garbled | Batch | None
"""None is for what needs no reaction, such as a response to nothing."""


def read_line(line: bytes | Overlong) -> Message:
    """One line of the client."""
    if isinstance(line, Overlong):
        mebibytes = line.ceiling // (1024 * 1024)
        return Refusal(
            salvage_ends(line.head, line.tail),
            INVALID_REQUEST,
            f"a line of more than {mebibytes} MiB; send large data by reference",
        )
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        return _unreadable(line, error)
    return Batch(value) if isinstance(value, list) else read_value(value)


def _unreadable(line: bytes, error: Exception) -> Message:
    found = salvage(line)
    problem = str(error) if isinstance(error, msgspec.DecodeError) else "nested too deeply"
    if found.method == "tools/call" and found.id is not None:
        return Garbled(found.id, problem, found.revision)
    return Refusal(found.id, PARSE_ERROR, f"not JSON in UTF-8: {problem}")


def read_value(value: Any) -> Message:
    """One message, decoded."""
    if not isinstance(value, dict):
        return Refusal(None, INVALID_REQUEST, "a message is a JSON object")
    has_id, found = "id" in value, value.get("id")
    identifier = found if is_id(found) else None
    if "method" not in value and ("result" in value or "error" in value):
        return None
    method, params = value.get("method"), value.get("params")
    if value.get("jsonrpc") != "2.0" or not isinstance(method, str):
        return Refusal(
            identifier, INVALID_REQUEST, 'a message has "jsonrpc": "2.0" and a string as "method"'
        )
    if not has_id:
        return Notification(method, params if isinstance(params, dict) else {})
    if identifier is None:
        return Refusal(None, INVALID_REQUEST, "an id is a string or a whole number")
    if params is not None and not isinstance(params, dict):
        return Refusal(identifier, INVALID_PARAMS, "params is an object")
    return _with_revision(Request(identifier, method, params or {}))


def is_id(value: Any) -> TypeGuard[RequestId]:
    """What MCP takes as the id of a request."""
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def _with_revision(request: Request) -> Request | Refusal:
    """Reads the envelope that modern requests carry in `_meta`."""
    claims = META_REVISION in request.meta or request.method in MODERN_ONLY
    if request.method == "initialize" or not claims:
        return request
    missing = [key for key in (META_REVISION, META_CAPABILITIES) if key not in request.meta]
    if missing:
        return Refusal(request.id, INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}")
    requested = request.meta[META_REVISION]
    if not isinstance(requested, str):
        return Refusal(request.id, INVALID_PARAMS, f"{META_REVISION} is a string")
    revision = modern(requested)
    if revision is None:
        return Refusal(
            request.id,
            UNSUPPORTED_REVISION,
            "unsupported protocol version",
            {"supported": list(SUPPORTED), "requested": requested},
        )
    if not isinstance(request.meta[META_CAPABILITIES], dict):
        return Refusal(request.id, INVALID_PARAMS, f"{META_CAPABILITIES} is an object")
    return msgspec.structs.replace(request, revision=revision)
