"""Pushing messages into the adapters' windows: live as they become visible, else by refills, from
what is remembered or by reads.

A connection has at most one refill under way, and its lagging subscriptions take turns, so that
reads are bounded by connections and a window is not read for twice over. A window that is nearly
full is not refilled message by message: a quarter of it has to be free, or what is missing to fit.
Where retention has removed what comes next, the turn goes to the question how much that was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from agentbus.config import MIB
from agentbus.gateway import replies
from agentbus.gateway.alarms import Alarms
from agentbus.gateway.channels import Channel, Channels
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Attachment, Connection, Feed, feeds_of
from agentbus.gateway.events import StreamRead
from agentbus.gateway.inbox import Inbox
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.reads import Reads
from agentbus.gateway.recent import Block, Recent, cut, join
from agentbus.gateway.writer_link import WriterLink
from agentbus.model.delivery import Delivery, State
from agentbus.model.ids import ChannelId, Seq
from agentbus.model.stream import Entry, Lost, Push
from agentbus.wire.links import (
    GapAsk,
    GapTold,
    Outcome,
    SubscriptionInfo,
    Visible,
    VisibleMessage,
)
from agentbus.wire.rpc import Gap

LINE_BYTES: Final = MIB
"""Envelopes of one `deliver` line, unless a single one is larger."""

CHUNK_MESSAGES: Final = 256
RETRY_SECONDS: Final = 0.1
STALLED: Final = "stalled reads"
"""Name of the alarm at which `retry` is due."""

Part = tuple[Seq, bytes]
"""Messages as they stand in a line, and the position that reporting them hands off."""


class Pusher:
    """Feeds the subscriptions of all attachments."""

    def __init__(
        self,
        out: Outbox,
        alarms: Alarms,
        channels: Channels,
        condition: Condition,
        reads: Reads,
        writer: WriterLink,
        inbox: Inbox,
        prefetch: int,
    ) -> None:
        self._out = out
        self._alarms = alarms
        self._channels = channels
        self._condition = condition
        self._reads = reads
        self._writer = writer
        self._inbox = inbox
        self._recent = Recent()
        self._block = max(1, prefetch // 4)
        """Messages of a block: as many as have to be free before a window is refilled."""
        self._stalled: list[Feed] = []

    # ---- who is fed

    def add(self, attachment: Attachment, info: SubscriptionInfo) -> Feed:
        """Begins to feed a subscription from its durable cursor."""
        assert attachment.session_id is not None
        channel = self._channels.by_id(info.channel_id)
        delivery = Delivery(
            info.id,
            attachment.session_id,
            info.position,
            channel.stream,
            attachment.share,
            include_own=info.include_own,
        )
        feed = Feed(attachment, info, delivery)
        feed.head = self._head(feed)
        attachment.feeds[info.id] = channel.feeds[info.id] = feed
        self._look([feed])
        return feed

    def remove(self, feed: Feed) -> None:
        """Ends that; what it held of the window is free."""
        feed.delivery.end()
        feed.attachment.feeds.pop(feed.info.id, None)
        feeds = self._channels.by_id(feed.info.channel_id).feeds
        if feeds.get(feed.info.id) is feed:
            del feeds[feed.info.id]
        self.refill(feed.attachment.connection)

    def begin_epoch(self, connections: Iterable[Connection]) -> None:
        """What was pushed is void; everything is pushed again from what is confirmed."""
        self.forget()
        for connection in connections:
            connection.reading = 0
            for feed in feeds_of(connection):
                feed.delivery.restart()
                feed.head = self._head(feed)
            self._look(feeds_of(connection))

    def forget(self) -> None:
        """What is remembered need not be of the bus that there is now."""
        self._recent.forget()

    def _head(self, feed: Feed) -> bytes:
        info, epoch = feed.info, self._condition.epoch
        return replies.deliver_head(feed.attachment.id, epoch, info.id, info.channel)

    # ---- what comes

    def visible(self, frame: Visible) -> None:
        """Pushes what became visible to everybody who is up to it."""
        for channel_id, messages in _by_channel(frame.messages).items():
            channel = self._channels.by_id(channel_id)
            channel.grow(messages)
            if not channel.stream.dense:
                self._push_memories(channel, messages)
            elif channel.feeds:
                blocks = cut(messages, self._block)
                self._recent.add(channel_id, blocks)
                self._push(channel, blocks)

    def _push(self, channel: Channel, blocks: Sequence[Block]) -> None:
        for feed in channel.feeds.values():
            delivery = feed.delivery
            parts: list[Part] = []
            for block in blocks:
                push = delivery.visible(block)
                if push:
                    parts.append((push.through, _body(push, block)))
            if parts:
                self._tell(feed, parts)
                self._inbox.stir(feed.attachment)
            if delivery.state is not State.LIVE:
                self._inbox.stir(feed.attachment)
                if delivery.state is State.LAGGING and not feed.queued:
                    self._look([feed])

    def _push_memories(self, channel: Channel, messages: list[VisibleMessage]) -> None:
        """As they are now: what was deleted is left to a read, which passes over it."""
        current = self._reads.revisions.current(channel.id, messages)
        if current and self._condition.is_current:
            self._push(channel, cut(current, self._block))
        feeds = list(channel.feeds.values())
        for feed in feeds:
            feed.delivery.raised()
        self._look(feeds)

    def ready(self, connections: Iterable[Connection]) -> None:
        """The projection has told its tops, or memories can be read again."""
        for connection in connections:
            self._compare(feeds_of(connection))

    def trimmed(self, channels: Iterable[ChannelId]) -> None:
        """Retention has shortened these streams."""
        for identity in channels:
            feeds = list(self._channels.by_id(identity).feeds.values())
            for feed in feeds:
                self._inbox.stir(feed.attachment)
            self._compare(feeds)

    def _compare(self, feeds: Sequence[Feed]) -> None:
        for feed in feeds:
            feed.delivery.raised()
            feed.delivery.retried()
        self._look(feeds)

    def retry(self) -> None:
        """Tries again what stalled."""
        stalled, self._stalled = self._stalled, []
        for feed in stalled:
            feed.delivery.retried()
        self._look(stalled)

    def _look(self, feeds: Sequence[Feed]) -> None:
        """Has those that lag wait for a refill; all first, so that they take turns."""
        behind = [feed for feed in feeds if feed.delivery.state is State.LAGGING and _is_fed(feed)]
        for feed in behind:
            if not feed.queued:
                feed.queued = True
                feed.attachment.connection.lagging.append(feed)
        for feed in behind:
            self.refill(feed.attachment.connection)

    def is_behind(self, connection: Connection) -> bool | None:
        """Whether messages are on their way that there is room for; None while nobody knows."""
        if not self._condition.ready:
            return None
        return any(
            feed.delivery.state is not State.LIVE and _worth_reading(feed)
            for feed in feeds_of(connection)
        )

    # ---- refills

    def refill(self, connection: Connection) -> None:
        """Begins the connection's next refill, if there is one to make and room for it."""
        if connection.reading or connection.closed or not self._condition.ready:
            return
        for _ in range(len(connection.lagging)):
            feed = connection.lagging.popleft()
            feed.queued = feed.delivery.state is State.LAGGING and _is_fed(feed)
            if not feed.queued:
                continue
            if self._can_read(feed) and not self._remember_all(feed):
                feed.queued = False
                self._read(feed, connection)
                return
            feed.queued = feed.delivery.state is State.LAGGING
            if feed.queued:
                connection.lagging.append(feed)

    def _remember_all(self, feed: Feed) -> bool:
        """Pushes what is remembered and fits; False where a read has to go on, and is worth it."""
        delivery = feed.delivery
        while delivery.state is State.LAGGING and _worth_reading(feed):
            before = delivery.pushed
            if not self._remember(feed):
                return False
            if delivery.pushed == before:
                break
        return True

    def _remember(self, feed: Feed) -> bool:
        """Pushes what is remembered of what follows; False where nothing is. It ends with a block,
        if it can: what follows on that fits into windows as it is."""
        delivery, parts, found = feed.delivery, list[Part](), False
        if not delivery.stream.dense or delivery.is_cut:
            return False
        for block in self._recent.after(feed.info.channel_id, delivery.pushed):
            if found and not delivery.admits(block):
                break
            found = True
            push = delivery.remembered(block)
            if push:
                parts.append((push.through, _body(push, block)))
        if parts:
            self._tell(feed, parts)
        return found

    def _can_read(self, feed: Feed) -> bool:
        """Memories only once nothing in Redis is older than what the writer has told of."""
        return feed.delivery.stream.dense or self._condition.is_current

    def _read(self, feed: Feed, connection: Connection) -> None:
        delivery, window = feed.delivery, connection.window
        if delivery.is_cut:
            self._ask(feed, connection)
            return
        count = min(CHUNK_MESSAGES, delivery.lag, window.max_messages - window.messages)
        size = min(LINE_BYTES, window.max_bytes - window.bytes)
        ref = self._reads.read(
            feed.info.channel_id,
            delivery.pushed,
            (max(1, count), max(1, size)),
            partial(self._was_read, feed),
        )
        delivery.read_began(ref)
        connection.reading = ref

    def _was_read(self, feed: Feed, reply: StreamRead) -> None:
        if _is_fed(feed):
            at_end = not reply.more and reply.failure is None
            self._send(feed, feed.delivery.refilled(reply.ref, reply.entries, at_end=at_end))
        self._read_ended(feed, reply.ref)

    def _ask(self, feed: Feed, connection: Connection) -> None:
        frame = GapAsk(self._out.ref(), feed.info.id, feed.delivery.pushed)
        feed.delivery.read_began(frame.ref)
        connection.reading = frame.ref
        self._writer.inquire(frame, partial(self._told, feed))

    def _told(self, feed: Feed, outcome: Outcome) -> None:
        if _is_fed(feed):
            if isinstance(outcome, GapTold):
                answer = (outcome.after, outcome.resumed_at, outcome.lost)
                self._send(feed, feed.delivery.told(outcome.ref, *answer))
            else:
                feed.delivery.refilled(outcome.ref, ())
        self._read_ended(feed, outcome.ref)

    def _send(self, feed: Feed, push: Push | None) -> None:
        if push:
            self._tell(feed, _cut(push), [_gap(feed, lost) for lost in push.gaps])

    def _tell(self, feed: Feed, parts: Iterable[Part], gaps: Sequence[Gap] = ()) -> None:
        """One line, or several of about `LINE_BYTES`."""
        connection, last = feed.attachment.connection, Seq(0)
        bodies: list[bytes] = []
        size = 0
        for through, body in parts:
            if bodies and size + len(body) > LINE_BYTES:
                line = replies.deliver(feed.head, last, bodies, gaps, behind=True)
                self._out.pieces(connection, line)
                bodies, size, gaps = [], 0, ()
            bodies.append(body)
            size += len(body)
            last = through
        behind = feed.delivery.state is not State.LIVE
        self._out.pieces(connection, replies.deliver(feed.head, last, bodies, gaps, behind=behind))

    def _read_ended(self, feed: Feed, ref: int) -> None:
        connection = feed.attachment.connection
        if connection.reading == ref:
            connection.reading = 0
        if feed.delivery.state is State.STALLED:
            self._stalled.append(feed)
            self._alarms.ensure(STALLED, RETRY_SECONDS)
        self._look([feed])
        self.refill(connection)


def _body(push: Push, block: Block) -> bytes:
    return block.body if push.entries is block.entries else join(push.entries)


def _cut(push: Push) -> Iterable[Part]:
    part: list[Entry] = []
    size = 0
    for entry in push.entries:
        if part and size + len(entry.envelope) > LINE_BYTES:
            yield part[-1].seq, join(part)
            part, size = [], 0
        part.append(entry)
        size += len(entry.envelope)
    yield push.through, join(part)


def _gap(feed: Feed, lost: Lost) -> Gap:
    return Gap(
        channel=feed.info.channel,
        after_seq=lost.after_seq,
        resumed_at_seq=lost.resumed_at_seq,
        lost=lost.lost,
    )


def _by_channel(messages: list[VisibleMessage]) -> dict[ChannelId, list[VisibleMessage]]:
    runs: dict[ChannelId, list[VisibleMessage]] = {}
    for message in messages:
        run = runs.get(message.channel_id)
        if run is None:
            runs[message.channel_id] = [message]
        else:
            run.append(message)
    return runs


def _is_fed(feed: Feed) -> bool:
    return feed.attachment.feeds.get(feed.info.id) is feed


def _worth_reading(feed: Feed) -> bool:
    delivery, window = feed.delivery, feed.attachment.connection.window
    if delivery.starving:
        return True
    messages = window.max_messages - window.messages
    size = window.max_bytes - window.bytes
    roomy = messages * 4 >= window.max_messages or delivery.lag <= messages
    return messages > 0 and roomy and size * 4 >= window.max_bytes
