"""Who is connected: connections, the attachments they hold, the subscriptions fed to those."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from agentbus.errors import RateLimited, StaleAttachment
from agentbus.gateway.lanes import Lane
from agentbus.gateway.rates import Bucket
from agentbus.model.delivery import Delivery
from agentbus.model.ids import AttachmentId, CommitId, Seq, SessionId, SubscriptionId
from agentbus.model.message import Sender
from agentbus.model.window import Share, Window
from agentbus.wire.links import ExpiredInfo, Register, SubscriptionInfo

READS: Final = 4
"""Reads of one connection at a time."""

READ_RETRY_MS: Final = 50


class Call(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A request that waits for its answer; `id` is JSON, None where no answer is wanted, `size` the
    bytes of its line, `arrived` in monotonic seconds."""

    connection: Connection
    id: bytes | None
    size: int
    arrived: float


class Feed:
    """A subscription as it is fed to an attachment; `head` begins its `deliver` lines."""

    __slots__ = ("attachment", "delivery", "head", "info", "queued")

    def __init__(self, attachment: Attachment, info: SubscriptionInfo, delivery: Delivery) -> None:
        self.attachment = attachment
        self.info = info
        self.delivery = delivery
        self.head = b""
        self.queued = False
        """Whether it waits in its connection's `lagging`."""


class Farewell:
    """A cursor that ran out, until the session has said that it knows: it reports `through`."""

    __slots__ = ("info", "reported", "through")

    def __init__(self, info: ExpiredInfo, through: Seq) -> None:
        self.info = info
        self.through = through
        self.reported = False


class Attachment:
    """A live claim on a session, or (without `session_id`) the wish for one."""

    __slots__ = (
        "agent",
        "bucket",
        "connection",
        "counts_changed",
        "display_name",
        "farewells",
        "feeds",
        "id",
        "lane",
        "last_commit",
        "names",
        "session_id",
        "share",
    )

    def __init__(self, connection: Connection, names: Register) -> None:
        self.id: AttachmentId = names.attachment
        self.connection = connection
        self.names = names
        self.session_id: SessionId | None = None
        self.display_name = ""
        self.agent = ""
        self.share = Share(connection.window)
        self.feeds: dict[SubscriptionId, Feed] = {}
        self.farewells: dict[SubscriptionId, Farewell] = {}
        self.lane = Lane()
        self.bucket: Bucket | None = None
        self.last_commit = CommitId(0)
        """What it does next is to see everything up to here."""
        self.counts_changed = False
        """Whether it is to be told that its counts have changed."""

    @property
    def sender(self) -> Sender:
        """What its messages say about it."""
        names = self.names
        return Sender(
            self.display_name,
            self.agent,
            names.application,
            names.native,
            names.child,
            names.repository,
        )


class Connection:
    """One socket's worth of state."""

    __slots__ = (
        "attachments",
        "beat",
        "closed",
        "greeted",
        "id",
        "lagging",
        "reading",
        "reads",
        "unanswered",
        "window",
    )

    def __init__(self, identity: int, window: Window) -> None:
        self.id = identity
        self.window = window
        self.greeted = False
        self.closed = False
        self.attachments: dict[str, Attachment] = {}
        self.beat = 0.0
        """Monotonic time of the last heartbeat or registration."""
        self.unanswered = 0
        """Requests waiting for their answer."""
        self.lagging: deque[Feed] = deque()
        """Feeds that wait for a refill, in turn."""
        self.reading = 0
        """`ref` of the one refill under way, 0 where there is none."""
        self.reads = 0
        """Reads under way that somebody waits for."""

    def begin_read(self) -> None:
        """Counts one more. Raises RateLimited where there are many."""
        if self.reads >= READS:
            raise RateLimited(
                f"{READS} reads of this connection are under way; wait for one",
                retry_after_ms=READ_RETRY_MS,
            )
        self.reads += 1


def live(connection: Connection, identity: str) -> Attachment:
    """The attachment of that id on this connection. Raises StaleAttachment."""
    attachment = connection.attachments.get(identity)
    if attachment is None or attachment.session_id is None:
        raise stale()
    return attachment


def stale() -> StaleAttachment:
    """What is said to whoever names an attachment that is none."""
    return StaleAttachment("this connection has no such attachment (any more): register again")


def attachments_of(connections: Mapping[int, Connection]) -> Iterator[Attachment]:
    """All there are."""
    for connection in connections.values():
        yield from connection.attachments.values()


def feeds_of(connection: Connection) -> list[Feed]:
    """All subscriptions that are fed to a connection."""
    return [feed for each in connection.attachments.values() for feed in each.feeds.values()]
