"""How sends and changes of memories get to the writer, and what becomes of them there.

    size, room, rate   without a hook, what passes goes straight to the writer, whose receipt check
                       decides; a duplicate gets its tokens back
    receipt            what would not pass, and what is to be inspected, asks first whether it was
                       done already: then that is the answer, whatever has changed since
    hook               see `inspect`; the session's lane waits for it
    writer             checks receipt, attachment and readiness once more, and commits

What is refused leaves no trace, and does not stall its lane.
"""

from __future__ import annotations

from functools import partial

from agentbus.config import Settings
from agentbus.errors import AgentbusError, MessageTooLarge, RateLimited
from agentbus.gateway.alarms import Alarms
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Attachment, Call
from agentbus.gateway.finds import Finds, channel_of
from agentbus.gateway.inspect import Inspector
from agentbus.gateway.lanes import Lane, Lanes
from agentbus.gateway.metrics import Metrics
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.pending import Lasting, Operation, operation_id
from agentbus.gateway.writer_link import WriterLink
from agentbus.model.ids import CommitId
from agentbus.wire.error_codes import from_failure
from agentbus.wire.links import (
    Accepted,
    Append,
    MemoryDelete,
    MemoryEdit,
    Mutated,
    Outcome,
    ReceiptAsk,
    Refused,
)
from agentbus.wire.rpc import MemoryDeleteResult, MemoryEditResult, Params, SendResult


class Admission:
    """Operations that leave a receipt, from their shape on until they are visible."""

    def __init__(
        self,
        out: Outbox,
        alarms: Alarms,
        condition: Condition,
        writer: WriterLink,
        metrics: Metrics,
        finds: Finds,
        settings: Settings,
    ) -> None:
        self._out = out
        self._alarms = alarms
        self._condition = condition
        self._writer = writer
        self._metrics = metrics
        self._finds = finds
        self.inspector = Inspector(out, settings)
        hold = self._hold if self.inspector.is_wanted else None
        self._lanes = Lanes(writer.submit, hold)
        self.rejected = 0
        self._accepted: list[Call] = []
        """Those accepted by the outcomes being dealt with."""

    @property
    def lanes(self) -> Lanes:
        """In front of the writer."""
        return self._lanes

    # ---- in

    def admit(
        self,
        frame: Lasting,
        attachment: Attachment,
        call: Call,
        too_large: MessageTooLarge | None = None,
    ) -> None:
        """Has it carried out, or refused."""
        try:
            if too_large is not None:
                raise too_large
            attachment.lane.require_room(call.size)
            self._charge(attachment, call)
        except (MessageTooLarge, RateLimited) as error:
            self._unless_done(frame, call, error)
        else:
            self._lanes.offer(attachment.lane, Operation(frame, attachment, (call,), call.size))

    def _charge(self, attachment: Attachment, call: Call) -> None:
        assert attachment.bucket is not None
        wait = attachment.bucket.take(call.size, self._alarms.now)
        if wait:
            raise RateLimited(
                "this session sends more than send_messages_per_second or send_kib_per_second "
                f"allow; try again in {wait} ms",
                retry_after_ms=wait,
            )

    def _unless_done(self, frame: Lasting, call: Call, error: AgentbusError) -> None:
        """Refuses it, unless its receipt says that it was carried out before."""

        def then(outcome: Outcome) -> None:
            match outcome:
                case Accepted() | Mutated():
                    self._out.answer(call, _result(outcome))
                case Refused(_, failure):
                    self._refuse(call, from_failure(failure))
                case _:
                    self._refuse(call, error)

        self._writer.inquire(self._receipt(frame), then)

    def _receipt(self, frame: Lasting) -> ReceiptAsk:
        identity = operation_id(frame)
        return ReceiptAsk(self._out.ref(), frame.attachment, identity, frame.fingerprint)

    def _refuse(self, call: Call, error: AgentbusError) -> None:
        self.rejected += 1
        self._out.refuse(call, error)

    # ---- inspection

    def _hold(self, lane: Lane, operation: Operation) -> None:
        frame = operation.frame
        assert isinstance(frame, Append | MemoryEdit | MemoryDelete)
        self._writer.inquire(self._receipt(frame), partial(self._unknown, lane, operation))

    def _unknown(self, lane: Lane, operation: Operation, outcome: Outcome) -> None:
        """The writer has said whether the operation was carried out before."""
        if lane.held_by is not operation:
            return  # it was dropped
        frame = operation.frame
        if isinstance(outcome, Accepted | Mutated):
            self._give_back(operation)
            self._out.answer_all(operation.calls, _result(outcome))
            self._lanes.let_go(lane, submit=False)
        elif isinstance(outcome, Refused):
            self._turn_away(lane, operation, from_failure(outcome.failure))
        elif isinstance(frame, MemoryEdit | MemoryDelete):
            then = partial(self._located, lane, operation)
            self._finds.find(frame.memory_id, then, message=False)
        elif isinstance(frame, Append):
            self._inspect(lane, operation, frame.channel)

    def _located(self, lane: Lane, operation: Operation, found: bytes | AgentbusError) -> None:
        """The hook is told in which channel a memory is."""
        if lane.held_by is not operation:
            return
        if isinstance(found, bytes):
            self._inspect(lane, operation, channel_of(found))
        else:
            self._turn_away(lane, operation, found)

    def _inspect(self, lane: Lane, operation: Operation, channel: str) -> None:
        def then(error: AgentbusError | None) -> None:
            if lane.held_by is not operation:
                return
            if error is None:
                self._lanes.let_go(lane, submit=True)
            else:
                self._turn_away(lane, operation, error)

        self.inspector.inspect(operation, channel, then)

    def _turn_away(self, lane: Lane, operation: Operation, error: AgentbusError) -> None:
        for call in operation.calls:
            self._refuse(call, error)
        self._lanes.let_go(lane, submit=False)

    # ---- out

    def carried_out(self, operation: Operation, outcome: Accepted | Mutated) -> None:
        """It is stored, or was before."""
        (call,) = operation.calls
        attachment = operation.attachment
        if attachment is not None:
            # Of a duplicate as well: a writer that died may have stored it without a word.
            attachment.last_commit = self._condition.committed
        if outcome.duplicate:
            self._lanes.credit.give(call.size)
            self._give_back(operation)
        else:
            self._accepted.append(call)
        self._out.answer(call, _result(outcome))

    def _give_back(self, operation: Operation) -> None:
        attachment = operation.attachment
        if attachment is not None and attachment.bucket is not None:
            attachment.bucket.refund(operation.size)

    def refused(self, operation: Operation, error: AgentbusError) -> None:
        """It is not stored."""
        (call,) = operation.calls
        self._lanes.credit.give(call.size)
        self._refuse(call, error)

    def batch_ended(self, commit: CommitId) -> None:
        """What this batch accepted becomes visible with this commit."""
        accepted, self._accepted = self._accepted, []
        if accepted:
            self._metrics.sends_accepted([call.arrived for call in accepted])
            self._visible(self._lanes.credit.accepted(commit, accepted))
        self._lanes.drain()

    def visible(self, commit: CommitId) -> None:
        """Everything up to this commit is visible."""
        self._visible(self._lanes.credit.visible(commit))
        self._lanes.drain()

    def _visible(self, calls: list[Call]) -> None:
        if calls:
            self._metrics.sends_visible([call.arrived for call in calls])

    # ---- not now

    def drop(self, lane: Lane, error: AgentbusError) -> None:
        """Refuses what waits in one lane."""
        self._drop(self._lanes.drop(lane), error)

    def drop_all(self) -> None:
        """Refuses what waits: the bus is no longer ready."""
        self._drop(self._lanes.drop_all(), self._condition.unready())

    def _drop(self, operations: list[Operation], error: AgentbusError) -> None:
        for operation in operations:
            self.inspector.forget(operation)
            for call in operation.calls:
                self._refuse(call, error)


def _result(outcome: Accepted | Mutated) -> Params:
    if isinstance(outcome, Accepted):
        return SendResult(
            message_id=outcome.message_id,
            seq=outcome.seq,
            sent_at=outcome.sent_at,
            duplicate=outcome.duplicate,
            memory_id=outcome.memory_id,
            revision=outcome.revision,
        )
    if outcome.revision is None:
        return MemoryDeleteResult(
            memory_id=outcome.memory_id,
            deleted_revision=outcome.replaced_revision,
            duplicate=outcome.duplicate,
        )
    return MemoryEditResult(
        memory_id=outcome.memory_id,
        revision=outcome.revision,
        replaced_revision=outcome.replaced_revision,
        duplicate=outcome.duplicate,
    )
