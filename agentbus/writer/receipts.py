"""What was done under an operation id: a retry is answered with it, anything else refused."""

from __future__ import annotations

from agentbus.errors import OperationIdConflict
from agentbus.model.message import rfc3339
from agentbus.store.write.rows import ReceiptRow
from agentbus.wire.links import Accepted, Mutated, NoReceipt, ReceiptAsk
from agentbus.writer.state import Attached
from agentbus.writer.work import Work


def ask(work: Work, operation: ReceiptAsk) -> Accepted | Mutated | NoReceipt:
    """Whether an operation has been carried out.

    Raises Recovering, StaleAttachment, OperationIdConflict.
    """
    work.require_ready()
    attached = work.state.holder(operation.attachment)
    receipt = original(work, attached, operation.operation_id, operation.fingerprint)
    return NoReceipt(operation.ref) if receipt is None else told(operation.ref, receipt)


def original(
    work: Work, attached: Attached, operation_id: str, fingerprint: bytes
) -> ReceiptRow | None:
    """The receipt of the same operation; None where the id is free. Raises OperationIdConflict."""
    receipt = work.rows.receipts.get(operation_id)
    if receipt is None:
        if operation_id in work.taken:
            raise _conflict(operation_id, "so long ago that its receipt has expired")
        return None
    if receipt[2] != attached.session.id or receipt[3] != fingerprint:
        raise _conflict(operation_id, "by another session or with another payload")
    return receipt


def told(ref: int, receipt: ReceiptRow) -> Accepted | Mutated:
    """The original's answer, to a retry."""
    _, operation_id, _, _, _, seq, accepted_at, memory_id, revision, replaced = receipt
    if replaced is None:
        sent_at = rfc3339(accepted_at)
        return Accepted(ref, operation_id, seq, sent_at, True, memory_id, revision)
    assert memory_id is not None
    return Mutated(ref, memory_id, revision, replaced, True)


def _conflict(operation_id: str, how: str) -> OperationIdConflict:
    return OperationIdConflict(
        f"the id {operation_id!r} was used before, {how}; take a fresh id for another operation"
    )
