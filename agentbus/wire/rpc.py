"""JSON-RPC 2.0 between adapters (and commands) and the daemon: one object a line, UTF-8.

A connection starts with `hello`. Everything but `hello`, `status`, `stop` and `reset` needs an
accepted hello; everything about a session needs an attachment from `register` on the same
connection. A request is answered once, answers may overtake each other. Notifications only come
from the daemon. Application errors have JSON-RPC code -32000 and the application's code in
`data.code`.

The classes below are the reference: `METHODS` names the params and result of each method,
`NOTIFICATIONS` the params of each notification. Absent members take the defaults.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from agentbus.model.channel import Kind
from agentbus.model.message import DEFAULT_TYPE, Reference, Scalar
from agentbus.wire.error_codes import RpcError

PROTOCOL: Final = 1
"""Raised when adapters and daemons of neighbouring numbers would misunderstand each other."""

MAX_LINE: Final = 8 * 1024 * 1024
"""Bytes of one line, its newline included."""


class Params(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What all params and results are."""


class AttachmentParams(Params, frozen=True):
    """Of whatever is asked in the name of an attachment; all that `release` and `renew` need."""

    attachment: str


# ---- envelope ------------------------------------------------------------------------------------


class Request(msgspec.Struct, frozen=True):
    """A line from a client, its params still unread."""

    method: str
    id: int | str | None = None
    params: msgspec.Raw = msgspec.Raw(b"{}")
    jsonrpc: str = "2.0"


class Reply(msgspec.Struct, frozen=True):
    """A line from the daemon: a response (with `id`) or a notification (with `method`)."""

    id: int | str | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"")
    result: msgspec.Raw = msgspec.Raw(b"")
    error: RpcError | None = None
    jsonrpc: str = "2.0"


# ---- connection ----------------------------------------------------------------------------------


class HelloParams(Params, frozen=True):
    """First request. `fingerprint` is `Settings.fingerprint()` of the caller's effective settings,
    None from commands that work whatever the settings are; `config_path` is for the error text."""

    protocol: int
    version: str
    fingerprint: str | None = None
    config_path: str | None = None


class HelloResult(Params, frozen=True):
    """`state` is starting, recovering, ready or stopping."""

    protocol: int
    version: str
    instance: str
    state: str


class RegisterParams(Params, frozen=True):
    """Claims a session. Refused with `session_already_connected` while another attachment lives.

    `session` is the root conversation's id. A subagent's own is `child`; then `parent` is the
    root's once more, and `role` what the subagent does, which becomes a part of its name.
    `again`: the caller had this claim, and lost it with a connection or a daemon. Nobody resumes
    the session then, so its subscriptions are not renewed.
    """

    application: str
    session: str
    agent: str | None = None
    child: str | None = None
    parent: str | None = None
    role: str | None = None
    repository: str | None = None
    repository_root: str | None = None
    channels: list[str] | None = None
    again: bool = False


class Subscription(Params, frozen=True):
    """`subscription` names it in `deliver` and `delivered`; `position` is the durable cursor;
    `expires_at` RFC 3339."""

    subscription: int
    channel: str
    position: int
    expires_at: str
    include_own: bool


class RegisterResult(Params, frozen=True):
    """`epoch` is the one to report positions under."""

    attachment: str
    display_name: str
    agent: str
    resumed: bool
    epoch: str
    subscriptions: list[Subscription]
    instance: str = ""


class HeartbeatParams(Params, frozen=True):
    """Every 10 s, for all attachments of the connection; without one for 30 s they end."""


class HeartbeatResult(Params, frozen=True):
    """The attachments of this connection that are alive; register the missing ones anew.

    `state` is as in `HelloResult`. `lagging` tells that a subscription of this connection has
    messages in its stream that were not delivered yet although its window has room: an adapter with
    an empty buffer then asks again shortly, before it says that there is nothing. None: not known.
    It also waits until `visible` has come to where `accepted` was when it asked first (both are
    commit numbers): then what anybody had sent before is in its buffer.
    """

    attachments: list[str]
    state: str = "ready"
    lagging: bool | None = None
    accepted: int = 0
    visible: int = 0


class Empty(Params, frozen=True):
    """A result without content."""


class RenewResult(Params, frozen=True):
    """The subscriptions with their new lifetimes."""

    subscriptions: list[Subscription]


# ---- channels ------------------------------------------------------------------------------------


class ChannelCreateParams(AttachmentParams, frozen=True):
    """Creating again with the same kind succeeds."""

    name: str
    kind: Kind = "ordinary"


class ChannelCreateResult(Params, frozen=True):
    """`created` False: it existed."""

    channel: str
    kind: Kind
    created: bool


class ChannelListParams(AttachmentParams, frozen=True):
    """`limit` 1 to 1000; `cursor` as an earlier page gave it. Channels come by name."""

    limit: int = 100
    cursor: str | None = None


class ChannelEntry(Params, frozen=True):
    """`undelivered` counts the messages after the session's cursor, None where not subscribed."""

    name: str
    kind: Kind
    messages: int
    subscribed: bool
    newest_at: str | None = None
    undelivered: int | None = None


class ChannelListResult(Params, frozen=True):
    """One page; `next_cursor` where there is another."""

    channels: list[ChannelEntry]
    next_cursor: str | None = None


class SubscribeParams(AttachmentParams, frozen=True):
    """`include_own` None keeps what it is, False at first."""

    channel: str
    include_own: bool | None = None


class SubscribeResult(Params, frozen=True):
    """`expired_from` is where an expired cursor had stood."""

    subscription: int
    channel: str
    position: int
    expires_at: str
    created: bool
    include_own: bool
    expired_from: int | None = None


class UnsubscribeParams(AttachmentParams, frozen=True):
    """Discards the cursor."""

    channel: str


class UnsubscribeResult(Params, frozen=True):
    """`removed` False: there was no subscription."""

    channel: str
    removed: bool


# ---- messages ------------------------------------------------------------------------------------


class SendParams(AttachmentParams, frozen=True):
    """`message_id` is the operation id: fixed before the first try, reused on every retry."""

    channel: str
    message_id: str
    content: str
    type: str = DEFAULT_TYPE
    reply_to: str | None = None
    metadata: dict[str, Scalar] | None = None
    references: list[Reference] | None = None


class SendResult(Params, frozen=True):
    """`duplicate`: an earlier try had been accepted; these are its facts."""

    message_id: str
    seq: int
    sent_at: str
    duplicate: bool
    memory_id: str | None = None
    revision: int | None = None


class HistoryParams(AttachmentParams, frozen=True):
    """Messages with `after` < seq < `before`. With `after` alone the oldest of them first come,
    else the newest; always returned in stream order. `limit` 1 to 1000; `max_bytes` bounds the
    envelopes' sum, at least one message comes (up to 4 MiB)."""

    channel: str
    before: int | None = None
    after: int | None = None
    limit: int = 100
    max_bytes: int = 4 * 1024 * 1024


class HistoryResult(Params, frozen=True):
    """`more`: there are further messages in that direction."""

    messages: list[msgspec.Raw]
    more: bool


class DeliveredParams(AttachmentParams, frozen=True):
    """[subscription, position] pairs handed off under `epoch`. Answered after the commit; refused
    with `stale_attachment` when the attachment or epoch is over (report again under the new one).
    """

    epoch: str
    positions: list[tuple[int, int]]


class MemoryParams(AttachmentParams, frozen=True):
    """Names a memory; all that `memory.get` needs."""

    memory_id: str


class MemoryResult(Params, frozen=True):
    """The current revision, as a message."""

    message: msgspec.Raw


class MemoryEditParams(MemoryParams, frozen=True):
    """Absent `type`, `metadata`, `references` stay as they are; empty ones are cleared."""

    operation_id: str
    content: str
    type: str | None = None
    metadata: dict[str, Scalar] | None = None
    references: list[Reference] | None = None


class MemoryEditResult(Params, frozen=True):
    """Last commit wins; `replaced_revision` shows whose edit was replaced."""

    memory_id: str
    revision: int
    replaced_revision: int
    duplicate: bool


class MemoryDeleteParams(MemoryParams, frozen=True):
    """Deletes the current revision; it is not served again."""

    operation_id: str


class MemoryDeleteResult(Params, frozen=True):
    """`deleted_revision` was the current one."""

    memory_id: str
    deleted_revision: int
    duplicate: bool


class MemoryListParams(AttachmentParams, frozen=True):
    """Current revisions of a memory channel in the order of creation. `limit` 1 to 1000."""

    channel: str
    limit: int = 100
    cursor: str | None = None
    max_bytes: int = 4 * 1024 * 1024


class MemoryListResult(Params, frozen=True):
    """One page; `next_cursor` where there is another."""

    memories: list[msgspec.Raw]
    next_cursor: str | None = None


class SearchParams(AttachmentParams, frozen=True):
    """`query` empty: the filters alone. Never a syntax error; more than 4 KiB is refused."""

    query: str = ""
    channels: list[str] | None = None
    sender: str | None = None
    since: str | None = None
    until: str | None = None
    thread: str | None = None
    reply_to: str | None = None
    kind: Kind | None = None
    order: Literal["newest", "relevance"] = "newest"
    limit: int = 100
    cursor: str | None = None
    max_bytes: int = 4 * 1024 * 1024


class SearchItem(Params, frozen=True):
    """A current message and where it matched."""

    message: msgspec.Raw
    snippet: str


class SearchResult(Params, frozen=True):
    """One page; continuation survives concurrent changes."""

    results: list[SearchItem]
    next_cursor: str | None = None


class ReadParams(AttachmentParams, frozen=True):
    """A message by id (a memory's id or any of its revisions' ids: the current revision)."""

    message_id: str


class ReadResult(Params, frozen=True):
    """The whole message; the adapter cuts."""

    message: msgspec.Raw


class InboxEntry(Params, frozen=True):
    """`undelivered` leaves out own messages; `oldest_at` is when the oldest of them was sent."""

    channel: str
    undelivered: int
    oldest_at: str | None = None


class InboxParams(Params, frozen=True):
    """Counts for an attachment, or for a session by name (commands and hooks; nothing moves)."""

    attachment: str | None = None
    application: str | None = None
    session: str | None = None
    child: str | None = None


class InboxResult(Params, frozen=True):
    """Every subscription of the session, those without undelivered messages too."""

    channels: list[InboxEntry]


class DiscoverParams(AttachmentParams, frozen=True):
    """`agent` absent: everybody."""

    agent: str | None = None


class DiscoveredSession(Params, frozen=True):
    """`last_seen` RFC 3339."""

    display_name: str
    application: str
    session: str
    attached: bool
    last_seen: str
    child: str | None = None
    parent: str | None = None
    role: str | None = None
    repository: str | None = None


class DiscoveredAgent(Params, frozen=True):
    """Sessions come with the latest first, at most 100."""

    agent: str
    sessions: list[DiscoveredSession]


class DiscoverResult(Params, frozen=True):
    """Refused with `discovery_disabled` where the setting is off."""

    agents: list[DiscoveredAgent]


# ---- administration ------------------------------------------------------------------------------


class StatusResult(Params, frozen=True):
    """The document of `agentbus status --json` (see `docs/reference/status.md`)."""

    status: dict[str, Any]


METHODS: Final[dict[str, tuple[type[Params], type[Params]]]] = {
    "hello": (HelloParams, HelloResult),
    "register": (RegisterParams, RegisterResult),
    "release": (AttachmentParams, Empty),
    "heartbeat": (HeartbeatParams, HeartbeatResult),
    "renew": (AttachmentParams, RenewResult),
    "channel.create": (ChannelCreateParams, ChannelCreateResult),
    "channel.list": (ChannelListParams, ChannelListResult),
    "subscribe": (SubscribeParams, SubscribeResult),
    "unsubscribe": (UnsubscribeParams, UnsubscribeResult),
    "send": (SendParams, SendResult),
    "history": (HistoryParams, HistoryResult),
    "delivered": (DeliveredParams, Empty),
    "memory.get": (MemoryParams, MemoryResult),
    "memory.edit": (MemoryEditParams, MemoryEditResult),
    "memory.delete": (MemoryDeleteParams, MemoryDeleteResult),
    "memory.list": (MemoryListParams, MemoryListResult),
    "search": (SearchParams, SearchResult),
    "read": (ReadParams, ReadResult),
    "inbox": (InboxParams, InboxResult),
    "discover": (DiscoverParams, DiscoverResult),
    "status": (Empty, StatusResult),
    "stop": (Empty, Empty),
    "reset": (Empty, Empty),
}

# ---- notifications from the daemon ---------------------------------------------------------------


class Gap(Params, frozen=True):
    """Messages that retention removed before they were delivered; `lost` counts them exactly."""

    channel: str
    after_seq: int
    resumed_at_seq: int
    lost: int


class Expired(Params, frozen=True):
    """A cursor that ran out at `position`; report that position to have it forgotten."""

    channel: str
    position: int


class DeliverNote(Params, frozen=True):
    """Messages of one subscription, in stream order, for the adapter's buffer.

    `messages` are whole envelopes. Once all of them (and all earlier ones of the subscription) are
    handed off, `through` is the position to report: it may lie past the last message, since own
    messages are not delivered. `gaps` come before the messages. `behind` tells that the stream
    holds more that there was no room for, or that is still being read.
    """

    attachment: str
    epoch: str
    subscription: int
    channel: str
    through: int
    messages: list[msgspec.Raw] = []
    gaps: list[Gap] = []
    expired: list[Expired] = []
    behind: bool = False


class EpochNote(Params, frozen=True):
    """What you hold and have not handed off is void: drop it, use `epoch` from now on, and report
    what was handed off but not confirmed again."""

    epoch: str


class StoppingNote(Params, frozen=True):
    """`intentional` daemons are not started again until an agent asks for something."""

    reason: Literal["stop", "failure"]
    intentional: bool


class NoticeNote(Params, frozen=True):
    """Transient, never stored: `memory_changed` (with `message`), `memory_deleted`, `capacity`
    (with `text`). Bounded in the adapter, the oldest go first."""

    attachment: str
    kind: Literal["memory_changed", "memory_deleted", "capacity"]
    channel: str
    memory_id: str | None = None
    revision: int | None = None
    message: msgspec.Raw = msgspec.Raw(b"")
    text: str | None = None


class ObsoleteNote(Params, frozen=True):
    """What you hold of this memory is obsolete. Never dropped."""

    attachment: str
    epoch: str
    subscription: int
    seq: int
    memory_id: str


class ReviseNote(ObsoleteNote, frozen=True):
    """What you hold of this memory is obsolete: hand off `message` in its place. Never dropped."""

    message: msgspec.Raw


class RevokeNote(ObsoleteNote, frozen=True):
    """What you hold of this memory was deleted: pass over it (its position still counts). Never
    dropped."""


class InboxNote(Params, frozen=True):
    """The counts of this attachment's session have changed; for clients that listen."""

    attachment: str


NOTIFICATIONS: Final[dict[str, type[Params]]] = {
    "deliver": DeliverNote,
    "epoch": EpochNote,
    "stopping": StoppingNote,
    "notice": NoticeNote,
    "revise": ReviseNote,
    "revoke": RevokeNote,
    "inbox": InboxNote,
}
