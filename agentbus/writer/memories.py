"""Editing and deleting memories: the last commit wins, and says what it replaced.

A revision is a row of its own, with its operation's id, at its memory's place in the stream. What
was current is tombstoned in the same transaction.
"""

from __future__ import annotations

import msgspec

from agentbus.errors import NotFound
from agentbus.model.message import DEFAULT_TYPE, Message
from agentbus.store.write.rows import ReceiptRow, Revision
from agentbus.wire.links import MemoryChanged, MemoryDelete, MemoryEdit, Mutated
from agentbus.writer import envelopes, receipts
from agentbus.writer.state import Attached
from agentbus.writer.work import Work

_decode = msgspec.json.Decoder(Message).decode


def edit(work: Work, operation: MemoryEdit) -> Mutated:
    """Makes the next revision, or tells again which one it was.

    Raises Recovering, StaleAttachment, OperationIdConflict, NotFound, MessageTooLarge.
    """
    attached, receipt = _begin(work, operation)
    if receipt is not None:
        return _again(work, attached, operation, receipt)
    current = _current(work, operation.memory_id)
    message = _revision(work, attached, operation, current)
    envelope = envelopes.encoded(work.terms, message)
    session = attached.session.id
    work.room.take(len(envelope))
    work.rows.revise(
        session, operation.fingerprint, operation.memory_id, current, message, envelope
    )
    work.size += len(envelope)
    revision = current.number + 1
    _tell(work, attached, operation.memory_id, current, revision, envelope)
    return Mutated(operation.ref, operation.memory_id, revision, current.number, False)


def delete(work: Work, operation: MemoryDelete) -> Mutated:
    """Ends the memory, or tells again with which revision it ended.

    Raises Recovering, StaleAttachment, OperationIdConflict, NotFound.
    """
    attached, receipt = _begin(work, operation)
    if receipt is not None:
        return _again(work, attached, operation, receipt)
    memory_id, current = operation.memory_id, _current(work, operation.memory_id)
    work.rows.delete(
        attached.session.id, operation.operation_id, operation.fingerprint, memory_id, current
    )
    _tell(work, attached, memory_id, current, current.number, None)
    return Mutated(operation.ref, memory_id, None, current.number, False)


def _begin(work: Work, operation: MemoryEdit | MemoryDelete) -> tuple[Attached, ReceiptRow | None]:
    work.require_ready()
    attached = work.state.holder(operation.attachment)
    receipt = receipts.original(work, attached, operation.operation_id, operation.fingerprint)
    return attached, receipt


def _again(
    work: Work, attached: Attached, operation: MemoryEdit | MemoryDelete, receipt: ReceiptRow
) -> Mutated:
    """The original's answer. The change may have been told to a gateway or writer that died."""
    answer = receipts.told(operation.ref, receipt)
    assert isinstance(answer, Mutated)
    if all(change.memory_id != answer.memory_id for change in work.changed):
        _tell_again(work, attached, answer, receipt)
    return answer


def _tell_again(work: Work, attached: Attached, answer: Mutated, receipt: ReceiptRow) -> None:
    """Unless the memory was changed once more: then that was told, or will be."""
    memory_id, session = answer.memory_id, attached.session.id
    current = work.rows.current(memory_id)
    if current is not None and current.number == answer.revision:
        envelope: bytes | None = current.envelope
    elif answer.revision is None:
        envelope = None
    else:
        return
    number = answer.revision or answer.replaced_revision
    work.changed.append(
        MemoryChanged(receipt[4], memory_id, receipt[5], number, session, work.previous, envelope)
    )


def _current(work: Work, memory_id: str) -> Revision:
    current = work.rows.current(memory_id)
    if current is None:
        raise NotFound(
            f"there is no memory {memory_id!r}, or it was deleted; send to its channel to make one"
        )
    return current


def _revision(work: Work, attached: Attached, operation: MemoryEdit, current: Revision) -> Message:
    """What is not said stays as it is; an empty value clears."""
    old, sender = _decode(current.envelope), attached.sender
    kind, metadata, references = operation.message_type, operation.metadata, operation.references
    return Message(
        operation.operation_id,
        current.seq,
        old.channel,
        sender.display_name,
        sender.agent,
        sender.application,
        sender.session,
        work.sent_at_text,
        old.type if kind is None else kind or DEFAULT_TYPE,
        operation.content,
        old.thread,
        sender.child,
        sender.repository,
        old.reply_to,
        old.metadata if metadata is None else metadata or None,
        old.references if references is None else references or None,
        operation.memory_id,
        current.number + 1,
    )


def _tell(
    work: Work,
    attached: Attached,
    memory_id: str,
    at: Revision,
    revision: int,
    envelope: bytes | None,
) -> None:
    work.size += 64 + len(memory_id)
    work.changed.append(
        MemoryChanged(
            at.channel_id,
            memory_id,
            at.seq,
            revision,
            attached.session.id,
            work.commit_id,
            envelope,
        )
    )
