"""Who is connected: connections, the attachments they hold, the subscriptions fed to those."""

from __future__ import annotations

from collections import deque

from agentbus.gateway.lanes import Lane
from agentbus.gateway.rates import Bucket
from agentbus.model.delivery import Delivery
from agentbus.model.ids import AttachmentId, SessionId, SubscriptionId
from agentbus.model.window import Share, Window
from agentbus.wire.links import Register, SubscriptionInfo


class Call:
    """A request that waits for its answer; `id` is JSON, None where no answer is wanted."""

    __slots__ = ("arrived", "connection", "id", "size")

    def __init__(
        self, connection: Connection, identity: bytes | None, size: int, arrived: float
    ) -> None:
        self.connection = connection
        self.id = identity
        self.size = size
        """Bytes of the params."""
        self.arrived = arrived
        """Monotonic seconds."""


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


class Attachment:
    """A live claim on a session, or (without `session_id`) the wish for one."""

    __slots__ = (
        "agent",
        "bucket",
        "connection",
        "display_name",
        "feeds",
        "id",
        "lane",
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
        self.lane = Lane()
        self.bucket: Bucket | None = None


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
        self.attachments: dict[AttachmentId, Attachment] = {}
        self.beat = 0.0
        """Monotonic time of the last heartbeat or registration."""
        self.unanswered = 0
        """Requests waiting for their answer."""
        self.lagging: deque[Feed] = deque()
        """Feeds that wait for a refill, in turn."""
        self.reading = 0
        """`ref` of the one refill under way, 0 where there is none."""
        self.reads = 0
        """History reads under way."""
