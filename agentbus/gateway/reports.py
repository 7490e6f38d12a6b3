"""Reports of what was handed off: they free the window when they arrive, and are answered when the
writer has committed them, many at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

from agentbus.errors import InvalidArgument, StaleAttachment
from agentbus.gateway import accept, farewells
from agentbus.gateway.alarms import Alarms
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Attachment, Call, Feed
from agentbus.gateway.inbox import Inbox
from agentbus.gateway.metrics import Metrics
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.pending import Operation
from agentbus.gateway.push import Pusher
from agentbus.gateway.writer_link import WriterLink
from agentbus.model.ids import AttachmentId, Seq, SubscriptionId
from agentbus.wire.links import Report
from agentbus.wire.rpc import DeliveredParams

DELAY_SECONDS: Final = 0.02
MOST: Final = 100
"""Reports that wait at most so long, and at most so many."""

FLUSH: Final = "reports"
"""Name of the alarm at which `flush` is due."""


class _Batch:
    """Reports of one attachment that go to the writer together."""

    __slots__ = ("attachment", "calls", "positions")

    def __init__(self, attachment: Attachment) -> None:
        self.attachment = attachment
        self.calls: list[Call] = []
        self.positions: dict[SubscriptionId, Seq] = {}


class Reports:
    """Collects them."""

    def __init__(
        self,
        out: Outbox,
        alarms: Alarms,
        condition: Condition,
        writer: WriterLink,
        pusher: Pusher,
        inbox: Inbox,
        metrics: Metrics,
    ) -> None:
        self._out = out
        self._alarms = alarms
        self._condition = condition
        self._writer = writer
        self._pusher = pusher
        self._inbox = inbox
        self._metrics = metrics
        self._batches: dict[AttachmentId, _Batch] = {}
        self._waiting = 0

    def delivered(self, attachment: Attachment, call: Call, params: DeliveredParams) -> None:
        """Positions were handed off; those of unknown subscriptions are passed over."""
        if params.epoch != self._condition.epoch:
            raise StaleAttachment(
                f"epoch {params.epoch} is over: report what was handed off again under "
                f"{self._condition.epoch}"
            )
        positions = cast("list[tuple[SubscriptionId, Seq]]", params.positions)
        known, said = self._known(attachment, positions)
        if not (known or said):
            self._out.done([call])
            return
        batch = self._batches.get(attachment.id)
        if batch is None:
            batch = self._batches[attachment.id] = _Batch(attachment)
        batch.calls.append(call)
        if said:
            batch.positions.update(said)
        if known:
            self._move(batch, known)
        self._waiting += 1
        if self._waiting >= MOST or self._condition.stopping:
            self.flush()
        else:
            self._alarms.ensure(FLUSH, DELAY_SECONDS)

    def _known(
        self, attachment: Attachment, positions: Iterable[tuple[SubscriptionId, Seq]]
    ) -> tuple[list[tuple[Feed, Seq]], dict[SubscriptionId, Seq]]:
        """The reports of what is fed, and of cursors that ran out."""
        known, said = [], {}
        for identity, position in positions:
            accept.position("a reported position", position)
            feed = attachment.feeds.get(identity)
            if feed is not None:
                if position > feed.delivery.pushed:
                    self._require_possible(feed, position)
                known.append((feed, position))
            elif attachment.farewells:
                last = farewells.said(attachment, identity, position)
                if last is not None:
                    said[identity] = last
        return known, said

    def _require_possible(self, feed: Feed, value: int) -> None:
        """While the tops are not known only the writer can tell, who passes such reports over."""
        if self._condition.ready and not feed.delivery.could_have(value):
            raise InvalidArgument(
                f"position {value} of channel {feed.info.channel!r} was reported as handed off, "
                "but the channel has not come to it yet"
            )

    def _move(self, batch: _Batch, known: list[tuple[Feed, Seq]]) -> None:
        for feed, value in known:
            identity = feed.info.id
            if value > batch.positions.get(identity, -1):
                batch.positions[identity] = value
            freed = feed.delivery.reported(value)
            if freed:
                self._metrics.delivered(freed)
                self._inbox.stir(batch.attachment)
        connection = batch.attachment.connection
        if connection.lagging:
            self._pusher.refill(connection)

    # ---- to the writer and back

    @property
    def idle(self) -> bool:
        """Whether none waits to be asked for."""
        return not self._batches

    def flush(self) -> None:
        """Asks the writer to commit what has come in."""
        self._alarms.set(FLUSH, None)
        batches, self._batches, self._waiting = self._batches, {}, 0
        for batch in batches.values():
            self._ask(batch)

    def flush_of(self, attachment: Attachment) -> None:
        """The same for one attachment, before it ends."""
        batch = self._batches.pop(attachment.id, None)
        if batch is not None:
            self._waiting -= len(batch.calls)
            self._ask(batch)

    def _ask(self, batch: _Batch) -> None:
        frame = Report(self._out.ref(), batch.attachment.id, list(batch.positions.items()))
        self._writer.ask(frame, batch.attachment, batch.calls, lasting=True)

    def committed(self, operation: Operation, frame: Report) -> None:
        """The cursors are durable."""
        attachment = operation.attachment
        assert attachment is not None
        for identity, position in frame.positions:
            feed = attachment.feeds.get(identity)
            if feed is not None:
                feed.delivery.committed(position)
            else:
                farewells.committed(attachment, identity)
        self._out.done(operation.calls)

    def pass_own(self, attachment: Attachment) -> None:
        """Reports positions that nothing had to be delivered up to."""
        if attachment.session_id is None:
            return
        positions = []
        for feed in attachment.feeds.values():
            position = feed.delivery.passable()
            if position is not None:
                feed.delivery.passed(position)
                positions.append((feed.info.id, position))
        if positions:
            frame = Report(self._out.ref(), attachment.id, positions)
            self._writer.ask(frame, attachment, lasting=True)
