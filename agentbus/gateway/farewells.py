"""Cursors that ran out: their session is told, once a claim and epoch, until it reports that it
knows; only then the writer forgets them."""

from __future__ import annotations

from collections.abc import Iterable

from agentbus.gateway import replies
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Attachment, Connection, Farewell, attachments_of
from agentbus.gateway.inbox import Inbox
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.push import Pusher
from agentbus.model.ids import ChannelId, Seq, SubscriptionId
from agentbus.wire.links import CursorsExpired, ExpiredInfo
from agentbus.wire.rpc import Expired


class Farewells:
    """Tells of expired cursors."""

    def __init__(
        self,
        out: Outbox,
        condition: Condition,
        pusher: Pusher,
        inbox: Inbox,
        connections: dict[int, Connection],
    ) -> None:
        self._out = out
        self._condition = condition
        self._pusher = pusher
        self._inbox = inbox
        self._connections = connections

    def expired(self, frame: CursorsExpired) -> None:
        """Cursors of a session ran out. A writer that starts anew tells of those it finds, too."""
        for attachment in attachments_of(self._connections):
            if attachment.id == frame.attachment and attachment.session_id is not None:
                news = [info for info in frame.expired if info.id not in attachment.farewells]
                self.begin(attachment, news)
                return

    def begin(self, attachment: Attachment, expired: Iterable[ExpiredInfo]) -> None:
        """These have run out; what was pushed of them and not handed off comes before that."""
        for info in expired:
            through = info.position
            feed = attachment.feeds.get(info.id)
            if feed is not None:
                if feed.delivery.outstanding:
                    through = Seq(max(through, feed.delivery.pushed) + 1)
                self._pusher.remove(feed)
                self._inbox.stir(attachment)
            attachment.farewells[info.id] = Farewell(info, through)
            self._tell(attachment, attachment.farewells[info.id])

    def begin_epoch(self) -> None:
        """What was told is void."""
        for attachment in attachments_of(self._connections):
            for farewell in attachment.farewells.values():
                farewell.through, farewell.reported = farewell.info.position, False
                self._tell(attachment, farewell)

    def _tell(self, attachment: Attachment, farewell: Farewell) -> None:
        info = farewell.info
        head = replies.deliver_head(attachment.id, self._condition.epoch, info.id, info.channel)
        told = [Expired(channel=info.channel, position=info.position)]
        self._out.line(attachment.connection, replies.expired(head, farewell.through, told))

    def forget(self, attachment: Attachment, channel: ChannelId) -> None:
        """The session follows the channel anew, or has left it."""
        gone = [
            identity
            for identity, each in attachment.farewells.items()
            if each.info.channel_id == channel
        ]
        for identity in gone:
            del attachment.farewells[identity]


def said(attachment: Attachment, identity: SubscriptionId, position: int) -> Seq | None:
    """The position that the writer knows an expired cursor by, where the session was told."""
    farewell = attachment.farewells.get(identity)
    if farewell is None or position < farewell.through:
        return None
    farewell.reported = True
    return farewell.info.position


def committed(attachment: Attachment, identity: SubscriptionId) -> None:
    """The writer has forgotten a cursor, if that is what was reported of it."""
    farewell = attachment.farewells.get(identity)
    if farewell is not None and farewell.reported:
        del attachment.farewells[identity]
