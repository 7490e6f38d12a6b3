"""What a client wants, as `server.McpServer` tells it."""

from __future__ import annotations

from typing import Any

import msgspec


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


class ResourceRead(msgspec.Struct, frozen=True):
    """Somebody reads a resource; `call` and `client` are as in `ToolCall`."""

    call: int
    uri: str
    meta: dict[str, Any]
    client: str | None


class Cancelled(msgspec.Struct, frozen=True):
    """The client does not want the answer any more."""

    call: int


class Greeted(msgspec.Struct, frozen=True):
    """A client told its name, without calling a tool yet."""

    client: str | None


Event = Say | ToolCall | ResourceRead | Cancelled | Greeted
