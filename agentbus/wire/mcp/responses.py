"""Writing what a server sends: each function gives whole JSON, in the shape of one revision."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from agentbus.wire.mcp.catalogue import Tool, describe
from agentbus.wire.mcp.requests import META_SERVER, META_SUBSCRIPTION, RequestId
from agentbus.wire.mcp.revisions import MODERN, Revision

CACHE_MS: Final = 300_000
"""Tools and instructions change only with the program or its settings."""

_encode = msgspec.json.encode


class ServerInfo(msgspec.Struct, frozen=True):
    """Who we are; `instructions` reach the model's prompt."""

    name: str
    title: str
    version: str
    instructions: str


def response(identifier: RequestId, result: bytes) -> bytes:
    """A JSON-RPC response, without its line end."""
    return b'{"jsonrpc":"2.0","id":' + _encode(identifier) + b',"result":' + result + b"}"


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
            "capabilities": {"tools": {}},
            "serverInfo": server,
            "instructions": info.instructions,
        }
    )


def discovered(info: ServerInfo) -> bytes:
    """The result of `server/discover`: the revisions that need no handshake."""
    return _encode(
        {
            "supportedVersions": [revision.name for revision in MODERN],
            "capabilities": {"tools": {}},
            "instructions": info.instructions,
            **_cacheable(),
            **_complete(info),
        }
    )


def tool_list(info: ServerInfo, tools: list[Tool], revision: Revision) -> bytes:
    """The result of `tools/list`."""
    result: dict[str, Any] = {"tools": describe(tools, revision)}
    if revision.modern:
        result |= _cacheable() | _complete(info)
    return _encode(result)


def tool_result(info: ServerInfo, revision: Revision, structured: bytes, *, failed: bool) -> bytes:
    """The result of `tools/call`: the same JSON object as text and, where known, structured.

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
    return b"".join(parts)


def empty(info: ServerInfo, revision: Revision) -> bytes:
    """A result without content."""
    return _encode(_complete(info) if revision.modern else {})


def listening(identifier: RequestId) -> bytes:
    """Acknowledges `subscriptions/listen`: of the kinds that exist we send none, so far."""
    params = {"notifications": {}, "_meta": {META_SUBSCRIPTION: identifier}}
    return _encode(
        {
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": params,
        }
    )


def listened(info: ServerInfo, identifier: RequestId) -> bytes:
    """The result of `subscriptions/listen`, which says that the subscription has ended."""
    result = _complete(info)
    result["_meta"][META_SUBSCRIPTION] = identifier
    return _encode(result)


def _cacheable() -> dict[str, Any]:
    return {"ttlMs": CACHE_MS, "cacheScope": "private"}


def _complete(info: ServerInfo) -> dict[str, Any]:
    server = {"name": info.name, "title": info.title, "version": info.version}
    return {"resultType": "complete", "_meta": {META_SERVER: server}}
