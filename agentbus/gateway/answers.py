"""The writer's answers, handed to whoever asked."""

from __future__ import annotations

from typing import assert_never

from agentbus.errors import AgentbusError, StorageFailed
from agentbus.gateway.admission import Admission
from agentbus.gateway.attachments import Attachments
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.pending import Operation
from agentbus.gateway.reports import Reports
from agentbus.gateway.status import StatusDesk
from agentbus.gateway.subscriptions import Subscriptions
from agentbus.gateway.writer_link import WriterLink
from agentbus.wire.error_codes import from_failure, to_failure
from agentbus.wire.links import (
    Accepted,
    Append,
    ChannelCreated,
    Counted,
    Discovered,
    Done,
    GapTold,
    MemoryDelete,
    MemoryEdit,
    Mutated,
    NoReceipt,
    Outcome,
    Outcomes,
    Refused,
    Register,
    Registered,
    Renewed,
    Report,
    Subscribed,
    Unsubscribed,
    WriterStatus,
)


class Answers:
    """Finds the operation of each answer."""

    def __init__(
        self,
        out: Outbox,
        writer: WriterLink,
        admission: Admission,
        attachments: Attachments,
        subscriptions: Subscriptions,
        reports: Reports,
        status: StatusDesk,
    ) -> None:
        self._out = out
        self._writer = writer
        self._admission = admission
        self._attachments = attachments
        self._subscriptions = subscriptions
        self._reports = reports
        self._status = status

    def batch(self, frame: Outcomes) -> None:
        """The answers of one of the writer's batches."""
        for outcome in frame.outcomes:
            operation = self._writer.answered(outcome.ref)
            if operation is None:
                self._other(outcome)
            elif operation.then is not None:
                operation.then(outcome)
            else:
                self._one(operation, outcome)
        self._admission.batch_ended(frame.commit_id)

    def _other(self, outcome: Outcome) -> None:
        """Answers that are not to operations; those given up on are nothing."""
        if isinstance(outcome, WriterStatus):
            self._status.writer_told(outcome)
        elif isinstance(outcome, Refused):
            self._status.refused(outcome.ref)

    def _one(self, operation: Operation, outcome: Outcome) -> None:
        match outcome:
            case Accepted() | Mutated():
                self._admission.carried_out(operation, outcome)
            case Done():
                self._done(operation)
            case Refused():
                self.refuse(operation, from_failure(outcome.failure))
            case Registered():
                self._attachments.registered(operation, outcome)
            case Renewed():
                self._attachments.renewed(operation, outcome)
            case ChannelCreated():
                self._subscriptions.created(operation, outcome)
            case Subscribed():
                self._subscriptions.subscribed(operation, outcome)
            case Unsubscribed():
                self._subscriptions.unsubscribed(operation, outcome)
            case WriterStatus() | NoReceipt() | Discovered() | GapTold() | Counted():
                pass  # these go to whoever inquired
            case _:
                assert_never(outcome)

    def _done(self, operation: Operation) -> None:
        if isinstance(operation.frame, Report):
            self._reports.committed(operation, operation.frame)
        else:
            self._out.done(operation.calls)

    def refuse(self, operation: Operation, error: AgentbusError) -> None:
        """It was not carried out."""
        self._status.storage_failed(error)
        if operation.then is not None:
            operation.then(Refused(operation.frame.ref, to_failure(error)))
            return
        if isinstance(operation.frame, Append | MemoryEdit | MemoryDelete):
            self._admission.refused(operation, error)
            return
        if isinstance(operation.frame, Register):
            self._attachments.not_registered(operation, error)
        self._out.refuse_all(operation.calls, error)
        if operation.lasting and isinstance(error, StorageFailed):
            self._writer.keep(operation)
