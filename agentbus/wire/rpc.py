"""JSON-RPC 2.0 between adapters (and commands) and the daemon: one object a line, UTF-8.

A connection starts with `hello`. Everything but `hello`, `status` and `stop` needs an accepted
hello; everything about a session needs an attachment from `register` on the same connection.
A request is answered once, answers may overtake each other. Notifications only come from the
daemon. Application errors have JSON-RPC code -32000 and the application's code in `data.code`.

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


class AttachmentParams(Params, frozen=True):
    """Params of `release` and `renew`."""

    attachment: str


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


class ChannelCreateParams(Params, frozen=True):
    """Creating again with the same kind succeeds."""

    attachment: str
    name: str
    kind: Kind = "ordinary"


class ChannelCreateResult(Params, frozen=True):
    """`created` False: it existed."""

    channel: str
    kind: Kind
    created: bool


class ChannelListParams(Params, frozen=True):
    """`limit` 1 to 1000; `cursor` as an earlier page gave it. Channels come by name."""

    attachment: str
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


class SubscribeParams(Params, frozen=True):
    """`include_own` None keeps what it is, False at first."""

    attachment: str
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


class UnsubscribeParams(Params, frozen=True):
    """Discards the cursor."""

    attachment: str
    channel: str


class UnsubscribeResult(Params, frozen=True):
    """`removed` False: there was no subscription."""

    channel: str
    removed: bool


# ---- messages ------------------------------------------------------------------------------------


class SendParams(Params, frozen=True):
    """`message_id` is the operation id: fixed before the first try, reused on every retry."""

    attachment: str
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


class HistoryParams(Params, frozen=True):
    """Messages with `after` < seq < `before`. With `after` alone the oldest of them first come,
    else the newest; always returned in stream order. `limit` 1 to 1000; `max_bytes` bounds the
    envelopes' sum, at least one message comes (up to 4 MiB)."""

    attachment: str
    channel: str
    before: int | None = None
    after: int | None = None
    limit: int = 100
    max_bytes: int = 4 * 1024 * 1024


class HistoryResult(Params, frozen=True):
    """`more`: there are further messages in that direction."""

    messages: list[msgspec.Raw]
    more: bool


class DeliveredParams(Params, frozen=True):
    """[subscription, position] pairs handed off under `epoch`. Answered after the commit; refused
    with `stale_attachment` when the attachment or epoch is over (report again under the new one).
    """

    attachment: str
    epoch: str
    positions: list[tuple[int, int]]


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
    "status": (Empty, StatusResult),
    "stop": (Empty, Empty),
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
    messages are not delivered. `gaps` come before the messages.
    """

    attachment: str
    epoch: str
    subscription: int
    channel: str
    through: int
    messages: list[msgspec.Raw] = []
    gaps: list[Gap] = []
    expired: list[Expired] = []


class EpochNote(Params, frozen=True):
    """What you hold and have not handed off is void: drop it, use `epoch` from now on, and report
    what was handed off but not confirmed again."""

    epoch: str


class StoppingNote(Params, frozen=True):
    """`intentional` daemons are not started again until an agent asks for something."""

    reason: Literal["stop", "failure"]
    intentional: bool


NOTIFICATIONS: Final[dict[str, type[Params]]] = {
    "deliver": DeliverNote,
    "epoch": EpochNote,
    "stopping": StoppingNote,
}
