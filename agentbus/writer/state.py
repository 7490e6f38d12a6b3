"""What the writer knows without asking the database.

It runs ahead of the database within a transaction. When that fails it is thrown away and loaded
again, so that no number or name of a batch that failed stays given out.
"""

from __future__ import annotations

from typing import Final

import msgspec

from agentbus.errors import NotFound, StaleAttachment
from agentbus.model.channel import ChannelInfo, Kind
from agentbus.model.ids import AttachmentId, ChannelId, CommitId, Seq, SubscriptionId
from agentbus.model.message import Sender
from agentbus.model.session import Session, Subscription
from agentbus.store.write import WriteStore

THREADS: Final = 4096
"""Replies whose thread is remembered, as conversations reply to what was just said."""


class Channel(msgspec.Struct):
    """A channel; `last_seq` is the newest position given out."""

    id: ChannelId
    name: str
    kind: Kind
    last_seq: Seq

    @property
    def info(self) -> ChannelInfo:
        """As other processes are told."""
        return ChannelInfo(self.id, self.name, self.kind, self.last_seq)


class Attached(msgspec.Struct):
    """A session that somebody holds, with its cursors by their id.

    `told` are those of which its gateway has heard, from this writer, that they have expired.
    """

    session: Session
    sender: Sender
    subscriptions: dict[SubscriptionId, Subscription]
    resumed: bool
    told: set[SubscriptionId] = msgspec.field(default_factory=set)

    def subscription(self, channel: ChannelId) -> Subscription | None:
        """The cursor in a channel."""
        return next((s for s in self.subscriptions.values() if s.channel_id == channel), None)


class State:
    """The newest numbers, all channels, and the sessions that are attached."""

    def __init__(self, store: WriteStore) -> None:
        with store.snapshot():
            meta = store.bus.meta()
            channels = store.bus.channels()
            sessions = store.people.attached()
            cursors = [store.cursors.subscriptions(session.id) for session in sessions]
        self.instance: str = meta.instance
        self.incarnation: int = meta.incarnation
        self.last_id: int = meta.last_id
        self.commit_id: CommitId = meta.commit_id
        self.sent_at: int = meta.sent_at
        self.channels: dict[str, Channel] = {}
        self.channels_by_id: dict[ChannelId, Channel] = {}
        self.attached: dict[AttachmentId, Attached] = {}
        self.names: set[str] = set()
        self.threads: dict[str, str] = {}
        for info in channels:
            self.add_channel(Channel(info.id, info.name, info.kind, info.last_seq))
        for session, subscriptions in zip(sessions, cursors, strict=True):
            resumed = session.attached_at > session.created_at
            self.attach(session, subscriptions, resumed=resumed)

    def add_channel(self, channel: Channel) -> None:
        """A channel exists."""
        self.channels[channel.name] = channel
        self.channels_by_id[channel.id] = channel

    def channel(self, name: str) -> Channel:
        """Raises NotFound."""
        channel = self.channels.get(name)
        if channel is None:
            raise NotFound(f"there is no channel {name!r}; create it first, or see list_channels")
        return channel

    def attach(
        self, session: Session, subscriptions: list[Subscription], *, resumed: bool
    ) -> Attached:
        """A session is held under `session.attachment`."""
        assert session.attachment is not None
        cursors = {subscription.id: subscription for subscription in subscriptions}
        attached = Attached(session, session.sender, cursors, resumed)
        self.attached[session.attachment] = attached
        self.names.add(session.display_name)
        return attached

    def detach(self, attachment: AttachmentId) -> Attached | None:
        """Nobody holds it any more, its name is free; None where that was so already."""
        attached = self.attached.pop(attachment, None)
        if attached is not None:
            self.names.discard(attached.session.display_name)
        return attached

    def detach_all(self) -> None:
        """No attachment of an earlier gateway counts."""
        self.attached.clear()
        self.names.clear()

    def holder(self, attachment: AttachmentId) -> Attached:
        """Raises StaleAttachment."""
        attached = self.attached.get(attachment)
        if attached is None:
            raise StaleAttachment("the attachment is over; register again")
        return attached

    def remember_thread(self, message_id: str, thread: str) -> None:
        """For replies to that message."""
        if len(self.threads) >= THREADS:
            del self.threads[next(iter(self.threads))]
        self.threads[message_id] = thread
