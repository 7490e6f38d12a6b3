"""The way of a send through the gateway: shape, ready, attachment, size, credit, rate, writer.

Receipts are the writer's: a retry of an accepted send goes to it like any other and is answered
with the original's facts; then its tokens and its credit come back.
"""

from __future__ import annotations

from agentbus.errors import AgentbusError, RateLimited, Recovering, Unavailable
from agentbus.gateway import accept
from agentbus.gateway.alarms import Alarms
from agentbus.gateway.attachments import live
from agentbus.gateway.channels import Channels
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Attachment, Call
from agentbus.gateway.lanes import Lanes
from agentbus.gateway.metrics import Metrics
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.pending import Operation
from agentbus.gateway.writer_link import WriterLink
from agentbus.model.ids import CommitId
from agentbus.model.message import fingerprint
from agentbus.wire.links import Accepted, Append
from agentbus.wire.rpc import SendParams, SendResult


class Sending:
    """Sends from their request to their answer, and on until they are visible."""

    def __init__(
        self,
        out: Outbox,
        alarms: Alarms,
        condition: Condition,
        channels: Channels,
        writer: WriterLink,
        metrics: Metrics,
        max_message_kib: int,
    ) -> None:
        self._out = out
        self._alarms = alarms
        self._condition = condition
        self._channels = channels
        self._writer = writer
        self._metrics = metrics
        self._max_message_kib = max_message_kib
        self.lanes = Lanes(writer.submit)
        self.rejected = 0
        self._accepted: list[Call] = []
        """Sends accepted by the outcomes being dealt with."""

    # ---- in

    def send(self, call: Call, params: SendParams) -> None:
        """Judges a send and has it submitted, now or when there is credit."""
        try:
            self._send(call, params)
        except AgentbusError:
            self.rejected += 1
            raise

    def _send(self, call: Call, params: SendParams) -> None:
        if not self._channels.knows(params.channel):
            accept.name("channel", params.channel)
        payload = accept.payload(params)
        self._condition.require_ready()
        attachment = live(call.connection, params.attachment)
        accept.size(params, call.size, attachment, self._max_message_kib)
        attachment.lane.require_room(call.size)
        self._charge(attachment, call)
        frame = Append(
            self._out.ref(),
            attachment.id,
            params.channel,
            params.message_id,
            fingerprint(params.channel, payload),
            payload,
        )
        self.lanes.offer(attachment.lane, Operation(frame, attachment, (call,)))

    def _charge(self, attachment: Attachment, call: Call) -> None:
        assert attachment.bucket is not None
        wait = attachment.bucket.take(call.size, self._alarms.now)
        if wait:
            raise RateLimited(
                "this session sends more than send_messages_per_second or send_kib_per_second "
                f"allow; try again in {wait} ms",
                retry_after_ms=wait,
            )

    # ---- out

    def accepted(self, operation: Operation, outcome: Accepted) -> None:
        """The message is stored, or was before."""
        (call,) = operation.calls
        if outcome.duplicate:
            self.lanes.credit.give(call.size)
            if operation.attachment is not None and operation.attachment.bucket is not None:
                operation.attachment.bucket.refund(call.size)
        else:
            self._accepted.append(call)
        self._out.answer(
            call,
            SendResult(
                message_id=outcome.message_id,
                seq=outcome.seq,
                sent_at=outcome.sent_at,
                duplicate=outcome.duplicate,
                memory_id=outcome.memory_id,
                revision=outcome.revision,
            ),
        )

    def refused(self, operation: Operation, error: AgentbusError) -> None:
        """The message is not stored."""
        (call,) = operation.calls
        self.lanes.credit.give(call.size)
        self.rejected += 1
        self._out.refuse(call, error)

    def batch_ended(self, commit: CommitId) -> None:
        """What this batch accepted becomes visible with this commit."""
        accepted, self._accepted = self._accepted, []
        if accepted:
            self._metrics.sends_accepted([call.arrived for call in accepted])
            self._visible(self.lanes.credit.accepted(commit, accepted))
        self.lanes.drain()

    def visible(self, commit: CommitId) -> None:
        """Everything up to this commit is visible."""
        self._visible(self.lanes.credit.visible(commit))
        self.lanes.drain()

    def _visible(self, calls: list[Call]) -> None:
        if calls:
            self._metrics.sends_visible([call.arrived for call in calls])

    # ---- not now

    def clear_lanes(self) -> None:
        """Refuses what waits: the bus is no longer ready."""
        kind = Unavailable if self._condition.stopping else Recovering
        error = kind(f"the bus is not ready: {'; '.join(self._condition.reasons())}")
        for operation in self.lanes.drop_all():
            self.rejected += 1
            self._out.refuse_all(operation.calls, error)
