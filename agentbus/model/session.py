"""Sessions of agents, and where each stands in the channels it follows.

    agent         a persistent name, outlives sessions
    session       (application, native conversation id, child id or none): owns subscriptions
    attachment    one live claim on a session by one connection; without it nothing acts for it

Times are milliseconds since 1970, in UTC.
"""

from __future__ import annotations

from typing import Final

import msgspec

from agentbus.model.ids import AttachmentId, ChannelId, Seq, SessionId, SubscriptionId
from agentbus.model.message import Sender

EXPIRY_MARKER_HOURS: Final = 720
"""How long an expired cursor that nobody asked about is remembered."""

HOUR_MS: Final = 3_600_000


class SessionKey(msgspec.Struct, frozen=True):
    """What makes two claims the same session; never a process id."""

    application: str
    native: str
    child: str | None = None


class Subscription(msgspec.Struct):
    """A durable cursor: everything up to `position` was handed to the session.

    After `expires_at` it stands still, as a marker that tells the session what it missed.
    """

    id: SubscriptionId
    channel_id: ChannelId
    position: Seq
    include_own: bool
    expires_at: int

    def is_expired(self, now: int) -> bool:
        """No explicit activity for the cursor's lifetime."""
        return self.expires_at <= now

    def is_forgotten(self, now: int) -> bool:
        """Expired for so long that even the marker goes."""
        return self.expires_at + EXPIRY_MARKER_HOURS * HOUR_MS <= now

    def forward(self, position: Seq, top: Seq) -> bool:
        """Moves to a reported position, if that is ahead and exists; whether it did."""
        if not self.position < position <= top:
            return False
        self.position = position
        return True


class Session(msgspec.Struct):
    """A session as the bus knows it; `agent` is the name of `agent_id`.

    `display_name` is in use while `attachment` is there, else the last one used.
    """

    id: SessionId
    agent_id: int
    agent: str
    application: str
    native: str
    child: str | None
    parent: str | None
    role: str | None
    display_name: str
    repository: str | None
    attachment: AttachmentId | None
    attached_at: int
    last_seen: int
    created_at: int

    @property
    def key(self) -> SessionKey:
        """What it is found by."""
        return SessionKey(self.application, self.native, self.child)

    @property
    def sender(self) -> Sender:
        """What its messages say about it."""
        return Sender(
            self.display_name,
            self.agent,
            self.application,
            self.native,
            self.child,
            self.repository,
        )
