"""Writing what a server sends: each function gives whole JSON, in the shape of one revision."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from agentbus.errors import AgentbusError
from agentbus.wire.error_codes import to_data
from agentbus.wire.mcp.catalogue import (
    MIME_TYPE,
    Resource,
    Tool,
    describe,
    describe_resources,
)
from agentbus.wire.mcp.requests import META_SERVER, META_SUBSCRIPTION, RequestId
from agentbus.wire.mcp.revisions import MODERN, Revision

INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
"""In the handshake era; a bad parameter in the modern one."""

CACHE_MS: Final = 300_000
"""What is listed changes only with the program or its settings."""

CAPABILITIES: Final = {"tools": {}, "resources": {"subscribe": True}}

_encode = msgspec.json.encode


class ServerInfo(msgspec.Struct, frozen=True):
    """Who we are; `instructions` reach the model's prompt."""

    name: str
    title: str
    version: str
    instructions: str


def response(identifier: RequestId, *result: bytes, end: bytes = b"") -> bytes:
    """A JSON-RPC response, without its line end unless that is given.

    The result may come in parts: it may be large, and is copied once here.
    """
    head = (b'{"jsonrpc":"2.0","id":', _encode(identifier), b',"result":')
    return b"".join((*head, *result, b"}", end))


def error(identifier: RequestId | None, code: int, message: str, data: Any = None) -> bytes:
    """A JSON-RPC error, without its line end."""
    shown: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        shown["data"] = data
    return _encode({"jsonrpc": "2.0", "id": identifier, "error": shown})


def initialized(info: ServerInfo, revision: Revision) -> bytes:
    """The result of `initialize`."""
    server = {"name": info.name, "version": info.version}
    if revision.structured:
        server["title"] = info.title
    return _encode(
        {
            "protocolVersion": revision.name,
            "capabilities": CAPABILITIES,
            "serverInfo": server,
            "instructions": info.instructions,
        }
    )


def discovered(info: ServerInfo) -> bytes:
    """The result of `server/discover`: the revisions that need no handshake."""
    return _encode(
        {
            "supportedVersions": [revision.name for revision in MODERN],
            "capabilities": CAPABILITIES,
            "instructions": info.instructions,
            **_cacheable(CACHE_MS),
            **_complete(info),
        }
    )


def tool_list(info: ServerInfo, tools: list[Tool], revision: Revision) -> bytes:
    """The result of `tools/list`."""
    return _list(info, {"tools": describe(tools, revision)}, revision)


def resource_list(info: ServerInfo, resources: list[Resource], revision: Revision) -> bytes:
    """The result of `resources/list`."""
    result: dict[str, Any] = {"resources": describe_resources(resources, revision)}
    return _list(info, result, revision)


def template_list(info: ServerInfo, revision: Revision) -> bytes:
    """The result of `resources/templates/list`: there are none."""
    return _list(info, {"resourceTemplates": []}, revision)


def _list(info: ServerInfo, result: dict[str, Any], revision: Revision) -> bytes:
    if revision.modern:
        result |= _cacheable(CACHE_MS) | _complete(info)
    return _encode(result)


def resource_contents(info: ServerInfo, revision: Revision, uri: str, document: bytes) -> bytes:
    """The result of `resources/read`; what was read may be another at any time."""
    contents = {"uri": uri, "mimeType": MIME_TYPE, "text": document.decode()}
    result: dict[str, Any] = {"contents": [contents]}
    if revision.modern:
        result |= _cacheable(0) | _complete(info)
    return _encode(result)


def failure(identifier: RequestId, problem: AgentbusError) -> bytes:
    """The JSON-RPC error for what has no result to put it into."""
    return error(identifier, INTERNAL_ERROR, problem.message, to_data(problem))


def tool_result(
    info: ServerInfo, revision: Revision, structured: bytes, *, failed: bool
) -> list[bytes]:
    """The result of `tools/call`, in parts: the same JSON object as text and, where known,
    structured.

    JSON inside a JSON string: nothing in a message can end it or look like another record.
    """
    parts = [b'{"content":[{"type":"text","text":', _encode(structured.decode()), b"}]"]
    if revision.structured:
        parts += [b',"structuredContent":', structured]
    if failed:
        parts.append(b',"isError":true')
    if revision.modern:
        parts += [b",", _encode(_complete(info))[1:-1]]
    parts.append(b"}")
    return parts


def empty(info: ServerInfo, revision: Revision) -> bytes:
    """A result without content."""
    return _encode(_complete(info) if revision.modern else {})


def listening(identifier: RequestId, uris: list[str]) -> bytes:
    """Acknowledges `subscriptions/listen`: of the kinds of changes these resources' are told."""
    told = {"resourceSubscriptions": uris} if uris else {}
    return _notification(
        "notifications/subscriptions/acknowledged", {"notifications": told}, identifier
    )


def updated(uri: str, identifier: RequestId | None = None) -> bytes:
    """Tells that a resource has changed, to whoever listens by that request."""
    return _notification("notifications/resources/updated", {"uri": uri}, identifier)


def _notification(method: str, params: dict[str, Any], identifier: RequestId | None) -> bytes:
    if identifier is not None:
        params |= {"_meta": {META_SUBSCRIPTION: identifier}}
    return _encode({"jsonrpc": "2.0", "method": method, "params": params})


def listened(info: ServerInfo, identifier: RequestId) -> bytes:
    """The result of `subscriptions/listen`, which says that the subscription has ended."""
    result = _complete(info)
    result["_meta"][META_SUBSCRIPTION] = identifier
    return _encode(result)


def _cacheable(milliseconds: int) -> dict[str, Any]:
    return {"ttlMs": milliseconds, "cacheScope": "private"}


def _complete(info: ServerInfo) -> dict[str, Any]:
    server = {"name": info.name, "title": info.title, "version": info.version}
    return {"resultType": "complete", "_meta": {META_SERVER: server}}
