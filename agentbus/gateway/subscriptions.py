"""Channels and subscriptions on request."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from agentbus.gateway import accept
from agentbus.gateway.channels import Channel, Channels
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Attachment, Call, live
from agentbus.gateway.farewells import Farewells
from agentbus.gateway.inbox import Inbox
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.pending import Operation
from agentbus.gateway.push import Pusher
from agentbus.gateway.writer_link import WriterLink
from agentbus.model.delivery import State
from agentbus.model.ids import ChannelId
from agentbus.model.message import rfc3339
from agentbus.wire.links import (
    ChannelCreate,
    ChannelCreated,
    CountAsk,
    Counted,
    Outcome,
    Subscribe,
    Subscribed,
    SubscriptionInfo,
    Unsubscribe,
    Unsubscribed,
)
from agentbus.wire.rpc import (
    ChannelCreateParams,
    ChannelCreateResult,
    ChannelEntry,
    ChannelListParams,
    ChannelListResult,
    SubscribeParams,
    SubscribeResult,
    UnsubscribeParams,
    UnsubscribeResult,
)

Counts = dict[ChannelId, int]


class Subscriptions:
    """Methods and answers about them."""

    def __init__(
        self,
        out: Outbox,
        condition: Condition,
        channels: Channels,
        writer: WriterLink,
        pusher: Pusher,
        farewells: Farewells,
        inbox: Inbox,
    ) -> None:
        self._out = out
        self._condition = condition
        self._channels = channels
        self._writer = writer
        self._pusher = pusher
        self._farewells = farewells
        self._inbox = inbox

    # ---- methods

    def create(self, call: Call, params: ChannelCreateParams) -> None:
        """Asks for a channel."""
        accept.name("name", params.name)
        attachment = self._claimant(call, params.attachment)
        ref = self._out.ref()
        frame = ChannelCreate(ref, attachment.id, params.name, params.kind)
        self._writer.ask(frame, attachment, [call])

    def subscribe(self, call: Call, params: SubscribeParams) -> None:
        """Asks for a subscription."""
        accept.name("channel", params.channel)
        attachment = self._claimant(call, params.attachment)
        ref = self._out.ref()
        frame = Subscribe(ref, attachment.id, params.channel, params.include_own)
        self._writer.ask(frame, attachment, [call])

    def unsubscribe(self, call: Call, params: UnsubscribeParams) -> None:
        """Asks to be without one."""
        accept.name("channel", params.channel)
        attachment = self._claimant(call, params.attachment)
        frame = Unsubscribe(self._out.ref(), attachment.id, params.channel)
        self._writer.ask(frame, attachment, [call])

    def list(self, call: Call, params: ChannelListParams) -> None:
        """Tells the channels; how much is undelivered, the writer counts where we cannot."""
        accept.channel_list(params)
        attachment = live(call.connection, params.attachment)
        page, cursor = self._channels.page(params.cursor, params.limit)
        counts = {
            feed.info.channel_id: feed.delivery.undelivered for feed in attachment.feeds.values()
        }
        exact = all(feed.delivery.state is State.LIVE for feed in attachment.feeds.values())
        if exact or not self._condition.writer:
            self._tell(call, page, cursor, counts)
        else:
            then = partial(self._counted, call, page, cursor, counts)
            self._writer.inquire(CountAsk(self._out.ref(), attachment.id), then)

    def _counted(
        self,
        call: Call,
        page: Sequence[Channel],
        cursor: str | None,
        counts: Counts,
        outcome: Outcome,
    ) -> None:
        if isinstance(outcome, Counted):
            counts |= {info.channel_id: info.undelivered for info in outcome.subscriptions}
        self._tell(call, page, cursor, counts)

    def _tell(
        self, call: Call, page: Sequence[Channel], cursor: str | None, counts: Counts
    ) -> None:
        entries = [_entry(channel, counts.get(channel.id)) for channel in page]
        self._out.answer(call, ChannelListResult(channels=entries, next_cursor=cursor))

    def _claimant(self, call: Call, attachment: str) -> Attachment:
        self._condition.require_going_on()
        return live(call.connection, attachment)

    # ---- answers

    def created(self, operation: Operation, outcome: ChannelCreated) -> None:
        """There is the channel."""
        self._channels.opened(outcome.channel)
        info = outcome.channel
        result = ChannelCreateResult(channel=info.name, kind=info.kind, created=outcome.created)
        self._out.answer_all(operation.calls, result)

    def subscribed(self, operation: Operation, outcome: Subscribed) -> None:
        """There is the subscription; it is fed from now on, if it was not before."""
        info = outcome.subscription
        result = SubscribeResult(
            subscription=info.id,
            channel=info.channel,
            position=info.position,
            expires_at=rfc3339(round(info.expires_at * 1000)),
            created=outcome.created,
            include_own=info.include_own,
            expired_from=outcome.expired_from,
        )
        self._out.answer_all(operation.calls, result)
        if operation.attachment is not None:
            self._feed(operation.attachment, info)

    def _feed(self, attachment: Attachment, info: SubscriptionInfo) -> None:
        connection = attachment.connection
        if connection.attachments.get(attachment.id) is not attachment:
            return
        known = attachment.feeds.get(info.id)
        if known is not None:
            known.info = info
            known.delivery.include_own = info.include_own
            return
        for other in list(attachment.feeds.values()):
            if other.info.channel_id == info.channel_id:
                self._pusher.remove(other)
        self._farewells.forget(attachment, info.channel_id)
        self._pusher.add(attachment, info)
        self._inbox.stir(attachment)

    def unsubscribed(self, operation: Operation, outcome: Unsubscribed) -> None:
        """It is fed no longer."""
        removed = outcome.subscription is not None
        result = UnsubscribeResult(channel=outcome.channel, removed=removed)
        self._out.answer_all(operation.calls, result)
        if operation.attachment is not None and outcome.subscription is not None:
            feed = operation.attachment.feeds.get(outcome.subscription)
            operation.attachment.farewells.pop(outcome.subscription, None)
            if feed is not None:
                self._pusher.remove(feed)
                self._inbox.stir(operation.attachment)


def _entry(channel: Channel, undelivered: int | None) -> ChannelEntry:
    return ChannelEntry(
        name=channel.name,
        kind=channel.kind,
        messages=channel.messages,
        newest_at=channel.newest_at,
        subscribed=undelivered is not None,
        undelivered=undelivered,
    )
