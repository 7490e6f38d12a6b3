"""What may be asked: shapes, names and sizes, each with the exact error.

The first steps of the order in which a send is judged (semantics, "Sending"); what comes after
them is in `sending`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from agentbus.config import KIB
from agentbus.errors import InvalidArgument, MessageTooLarge
from agentbus.gateway.connections import Attachment
from agentbus.model.ids import Seq
from agentbus.model.message import DEFAULT_TYPE, SENT_AT_WIDTH, WIDEST_SEQ, Message, Payload, Scalar
from agentbus.model.names import NAME_BYTES, check_name
from agentbus.wire.rpc import (
    ChannelListParams,
    DiscoverParams,
    HistoryParams,
    InboxParams,
    MemoryDeleteParams,
    MemoryEditParams,
    MemoryListParams,
    RegisterParams,
    SearchParams,
    SendParams,
)

HINT_BYTES: Final = 4096
PAGE: Final = 1000
"""Largest `limit`."""

RESULT_BYTES: Final = 4 * 1024 * 1024
QUERY_BYTES: Final = 4 * KIB
CURSOR_BYTES: Final = KIB
CHANNELS: Final = 256
"""Channels that a registration may name."""

_SAFE_CHARACTERS: Final = NAME_BYTES // 4
"""So many characters fit whatever they are."""

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""C0, C1, and what ends a line without being one of them."""

_GROWTH: Final = 6
"""JSON never grows more than this when it is read and written again (a float such as 1e15)."""

_BOUND_OVERHEAD: Final = 16 * KIB
"""More than all that the bus adds to an envelope."""

_encode = msgspec.json.Encoder().encode


def name(what: str, value: str) -> None:
    """A name has 1 to 128 UTF-8 bytes and nothing that ends a line. Raises InvalidArgument."""
    if not (value.isprintable() and 0 < len(value) <= _SAFE_CHARACTERS):
        check_name(value, what)


def _hint(what: str, value: str | None) -> None:
    """Where a session works: shown beside names, so it must not imitate framing either."""
    if value is None:
        return
    if _CONTROL.search(value) or not 0 < len(value.encode()) <= HINT_BYTES:
        raise InvalidArgument(
            f"{what} must have 1 to {HINT_BYTES} UTF-8 bytes and no control characters"
        )


def _names(values: Iterable[tuple[str, str | None]]) -> None:
    for what, value in values:
        if value is not None:
            name(what, value)


def position(what: str, value: int | None) -> None:
    """Positions count up from 0. Raises InvalidArgument."""
    if value is not None and not 0 <= value <= WIDEST_SEQ:
        raise InvalidArgument(f"{what} is {value}, allowed is a position from 0 to {WIDEST_SEQ}")


def _within(what: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise InvalidArgument(f"{what} is {value}, allowed is 1 to {most}")


def registration(params: RegisterParams) -> None:
    """Raises InvalidArgument where a registration is not acceptable."""
    fields = ("application", "session", "agent", "child", "parent", "role")
    _names((field, getattr(params, field)) for field in fields)
    _hint("repository", params.repository)
    _hint("repository_root", params.repository_root)
    if (params.child is None) != (params.parent is None):
        raise InvalidArgument("child and parent come together: a child's id and its root's")
    if params.parent not in (None, params.session):
        raise InvalidArgument("parent is not the session: a child belongs to its root conversation")
    channels = params.channels or []
    if len(channels) > CHANNELS:
        raise InvalidArgument(f"channels has {len(channels)} names, allowed are {CHANNELS}")
    _names(("a name in channels", channel) for channel in channels)


def channel_list(params: ChannelListParams) -> None:
    """Raises InvalidArgument where a page is not acceptable."""
    _within("limit", params.limit, PAGE)
    _names([("cursor", params.cursor)])


def history(params: HistoryParams) -> None:
    """Raises InvalidArgument where a range is not acceptable."""
    _within("limit", params.limit, PAGE)
    _within("max_bytes", params.max_bytes, RESULT_BYTES)
    position("before", params.before)
    position("after", params.after)


def memory_list(params: MemoryListParams) -> Seq:
    """Where a page begins. Raises InvalidArgument where it is not acceptable."""
    name("channel", params.channel)
    _within("limit", params.limit, PAGE)
    _within("max_bytes", params.max_bytes, RESULT_BYTES)
    cursor = params.cursor or "0"
    if not (cursor.isascii() and cursor.isdigit() and int(cursor) <= WIDEST_SEQ):
        raise InvalidArgument(
            "cursor is none that memory.list has given; leave it out to begin with the first page"
        )
    return Seq(int(cursor))


def search(params: SearchParams) -> None:
    """Raises InvalidArgument where a search is not acceptable, whatever is looked for."""
    size_ = len(params.query.encode())
    if size_ > QUERY_BYTES:
        raise InvalidArgument(f"query has {size_} UTF-8 bytes, allowed are {QUERY_BYTES}")
    _within("limit", params.limit, PAGE)
    _within("max_bytes", params.max_bytes, RESULT_BYTES)
    channels = params.channels or []
    if len(channels) > CHANNELS:
        raise InvalidArgument(f"channels has {len(channels)} names, allowed are {CHANNELS}")
    _names(("a name in channels", channel) for channel in channels)
    _names((field, getattr(params, field)) for field in ("sender", "thread", "reply_to"))
    _names((field, getattr(params, field)) for field in ("since", "until"))
    if params.cursor is not None and len(params.cursor) > CURSOR_BYTES:
        raise InvalidArgument("cursor is none that a search has given")


def discover(params: DiscoverParams) -> None:
    """Raises InvalidArgument where an agent's name is none."""
    _names([("agent", params.agent)])


def inbox(params: InboxParams) -> None:
    """Raises InvalidArgument unless one session is named, in one way."""
    fields = ("application", "session", "child")
    _names((field, getattr(params, field)) for field in fields)
    named = params.application is not None and params.session is not None
    if named == (params.attachment is not None):
        raise InvalidArgument("name an attachment, or an application with its session")


def memory_edit(params: MemoryEditParams) -> None:
    """Raises InvalidArgument where an edit is not acceptable."""
    name("memory_id", params.memory_id)
    name("operation_id", params.operation_id)
    if params.type:
        name("type", params.type)
    if params.metadata:
        _metadata(params.metadata)


def memory_delete(params: MemoryDeleteParams) -> None:
    """Raises InvalidArgument where a deletion is not acceptable."""
    name("memory_id", params.memory_id)
    name("operation_id", params.operation_id)


def payload(params: SendParams) -> Payload:
    """What the sender chose. Raises InvalidArgument."""
    name("message_id", params.message_id)
    if params.type != DEFAULT_TYPE:
        name("type", params.type)
    if params.reply_to is not None:
        name("reply_to", params.reply_to)
    if params.metadata:
        _metadata(params.metadata)
    return Payload(params.content, params.type, params.reply_to, params.metadata, params.references)


def _metadata(metadata: dict[str, Scalar]) -> None:
    for value in metadata.values():
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise InvalidArgument("metadata has a whole number that does not fit into 64 bits")


def surely_fits(limit_kib: int) -> int:
    """The bytes of a request up to which nothing needs to be measured; may be negative."""
    return (limit_kib * KIB - _BOUND_OVERHEAD) // _GROWTH


def size(params: SendParams, attachment: Attachment, limit_kib: int) -> MessageTooLarge | None:
    """What is to be said where the envelope would pass the limit.

    What only the writer knows (a reply's thread) is left out, and the writer measures again.
    """
    return _fit(_widest(params, attachment), limit_kib)


def edit_size(
    params: MemoryEditParams, attachment: Attachment, limit_kib: int
) -> MessageTooLarge | None:
    """The same for an edit; what it leaves as it is only the writer knows."""
    return _fit(_widest_edit(params, attachment), limit_kib)


def _fit(widest: Message, limit_kib: int) -> MessageTooLarge | None:
    found, limit = len(_encode(widest)), limit_kib * KIB
    if found <= limit:
        return None
    return MessageTooLarge(
        f"the message's envelope has {found} bytes, max_message_kib is {limit_kib} ({limit} "
        "bytes): shorten it, or put the content into a file and send a reference to it"
    )


def _widest_edit(params: MemoryEditParams, attachment: Attachment) -> Message:
    send = SendParams(
        attachment="",
        channel="",
        message_id=params.operation_id,
        content=params.content,
        type=params.type or "",
        metadata=params.metadata,
        references=params.references,
    )
    return msgspec.structs.replace(_widest(send, attachment), memory_id=params.memory_id)


def _widest(params: SendParams, attachment: Attachment) -> Message:
    names = attachment.names
    return Message(
        params.message_id,
        WIDEST_SEQ,
        params.channel,
        attachment.display_name,
        attachment.agent,
        names.application,
        names.native,
        "0" * SENT_AT_WIDTH,
        params.type,
        params.content,
        "" if params.reply_to else params.message_id,
        names.child,
        names.repository,
        params.reply_to,
        params.metadata,
        params.references,
    )
