"""Requests to the daemon, made of a tool's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentbus.errors import InvalidArgument
from agentbus.model.message import WIDEST_SEQ, Reference
from agentbus.wire.rpc import (
    ChannelCreateParams,
    ChannelListParams,
    DiscoverParams,
    HistoryParams,
    InboxParams,
    MemoryDeleteParams,
    MemoryEditParams,
    MemoryListParams,
    MemoryParams,
    Params,
    ReadParams,
    SearchParams,
    SendParams,
    SubscribeParams,
    UnsubscribeParams,
)

Arguments = dict[str, Any]

OPERATION_IDS: Final = {
    "send": "message_id",
    "memory_edit": "operation_id",
    "memory_delete": "operation_id",
}
"""The argument that makes a tool's retries one operation."""

DEFAULT_PAGE: Final = 100
LONGEST_CURSOR: Final = 512
"""Bytes that a page keeps free for it."""

LEAST_ENVELOPE: Final = 192
"""Bytes of the smallest message there is, to bound the commas of a page."""


class Wanted(msgspec.Struct, frozen=True):
    """`room` is what the entries of the result may have, in bytes; `id` as in `Operation`."""

    arguments: Arguments
    room: int
    id: str | None = None


def with_references(arguments: Arguments) -> Arguments:
    """The references as such. Raises InvalidArgument where they are none."""
    references = arguments.get("references")
    if references is None:
        return arguments
    try:
        return arguments | {"references": msgspec.convert(references, list[Reference])}
    except msgspec.ValidationError as error:
        raise InvalidArgument(f"references: {error}; each is as the schema of send says") from error


def _send(wanted: Wanted, attachment: str) -> SendParams:
    arguments = wanted.arguments | {"message_id": wanted.id}
    return SendParams(attachment=attachment, **arguments)


def _memory_edit(wanted: Wanted, attachment: str) -> MemoryEditParams:
    arguments = wanted.arguments | {"operation_id": wanted.id}
    return MemoryEditParams(attachment=attachment, **arguments)


def _memory_delete(wanted: Wanted, attachment: str) -> MemoryDeleteParams:
    arguments = wanted.arguments | {"operation_id": wanted.id}
    return MemoryDeleteParams(attachment=attachment, **arguments)


def _history(wanted: Wanted, attachment: str) -> HistoryParams:
    given = wanted.arguments
    before, after = given.get("before"), given.get("after")
    return HistoryParams(
        attachment=attachment,
        channel=given["channel"],
        before=None if before is None else min(int(before), WIDEST_SEQ),
        after=None if after is None else min(int(after), WIDEST_SEQ),
        limit=_limit(wanted),
        max_bytes=wanted.room,
    )


def _channel_list(wanted: Wanted, attachment: str) -> ChannelListParams:
    return ChannelListParams(
        attachment=attachment,
        limit=_limit(wanted),
        cursor=wanted.arguments.get("cursor"),
    )


def _memory_list(wanted: Wanted, attachment: str) -> MemoryListParams:
    return MemoryListParams(
        attachment=attachment,
        channel=wanted.arguments["channel"],
        limit=_limit(wanted),
        cursor=wanted.arguments.get("cursor"),
        max_bytes=_room(wanted),
    )


def _search(wanted: Wanted, attachment: str) -> SearchParams:
    given = wanted.arguments | {"limit": _limit(wanted)}
    return SearchParams(attachment=attachment, max_bytes=_room(wanted), **given)


def _read(wanted: Wanted, attachment: str) -> ReadParams:
    return ReadParams(attachment=attachment, message_id=wanted.arguments["message_id"])


def _limit(wanted: Wanted) -> int:
    return int(wanted.arguments.get("limit", DEFAULT_PAGE))


def _room(wanted: Wanted) -> int:
    """What the envelopes of a page may have, beside what is around them."""
    commas = min(_limit(wanted), wanted.room // LEAST_ENVELOPE)
    return wanted.room - LONGEST_CURSOR - commas


def _as_given(kind: type[Params]) -> Callable[[Wanted, str], Params]:
    return lambda wanted, attachment: kind(attachment=attachment, **wanted.arguments)


INBOX: Final = "inbox"
"""The one that is no tool: it is read as a resource."""

METHODS: Final = {
    "send": "send",
    "history": "history",
    "search": "search",
    "read": "read",
    "memory_get": "memory.get",
    "memory_list": "memory.list",
    "memory_edit": "memory.edit",
    "memory_delete": "memory.delete",
    "list_channels": "channel.list",
    "create_channel": "channel.create",
    "subscribe": "subscribe",
    "unsubscribe": "unsubscribe",
    "discover": "discover",
    INBOX: "inbox",
}

PARAMS: Final[dict[str, Callable[[Wanted, str], Params]]] = {
    "send": _send,
    "history": _history,
    "search": _search,
    "read": _read,
    "memory_get": _as_given(MemoryParams),
    "memory_list": _memory_list,
    "memory_edit": _memory_edit,
    "memory_delete": _memory_delete,
    "list_channels": _channel_list,
    "create_channel": _as_given(ChannelCreateParams),
    "subscribe": _as_given(SubscribeParams),
    "unsubscribe": _as_given(UnsubscribeParams),
    "discover": _as_given(DiscoverParams),
    INBOX: _as_given(InboxParams),
}
