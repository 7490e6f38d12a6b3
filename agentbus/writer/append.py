"""Sending: receipts, size, threads, and the envelope, which is encoded here once and for all.

Everything that can refuse a message comes before the first change, so that a refused one leaves
nothing behind in a batch that goes on.
"""

from __future__ import annotations

from agentbus.errors import MessageTooLarge, OperationIdConflict, Recovering
from agentbus.model.ids import Seq
from agentbus.model.message import Message, Sender, encode_envelope, envelope_size, rfc3339
from agentbus.store.write.rows import Receipt
from agentbus.wire.links import Accepted, Append
from agentbus.writer.state import Channel
from agentbus.writer.work import Work


def append(work: Work, operation: Append) -> Accepted:
    """Accepts a message, or tells again how it was accepted.

    Raises Recovering, StaleAttachment, OperationIdConflict, NotFound, MessageTooLarge.
    """
    if work.not_ready is not None:
        raise Recovering(f"the bus is recovering ({work.not_ready}); try again shortly")
    attached = work.state.holder(operation.attachment)
    session = attached.session
    message_id = operation.message_id
    receipt = work.receipts.get(message_id)
    if receipt is not None:
        if receipt.session_id != session.id or receipt.fingerprint != operation.fingerprint:
            raise _conflict(message_id, "by another session or with another payload")
        return _accepted(operation, receipt, rfc3339(receipt.accepted_at), duplicate=True)
    if message_id in work.taken:
        raise _conflict(message_id, "so long ago that its receipt has expired")
    channel = work.state.channel(operation.channel)
    memory_id = work.terms.tokens.token() if channel.kind == "memory" else None
    thread = _thread(work, operation)
    envelope = _envelope(work, operation, attached.sender, channel, thread, memory_id)
    receipt = work.insert(operation, session, channel, thread, memory_id, envelope)
    if thread != message_id:
        work.state.remember_thread(message_id, thread)
    return _accepted(operation, receipt, work.sent_at_text, duplicate=False)


def _envelope(
    work: Work,
    operation: Append,
    sender: Sender,
    channel: Channel,
    thread: str,
    memory_id: str | None,
) -> bytes:
    payload, seq = operation.payload, channel.last_seq + 1
    envelope = encode_envelope(
        Message(
            operation.message_id,
            seq,
            channel.name,
            sender.display_name,
            sender.agent,
            sender.application,
            sender.session,
            work.sent_at_text,
            payload.type,
            payload.content,
            thread,
            sender.child,
            sender.repository,
            payload.reply_to,
            payload.metadata,
            payload.references,
            memory_id,
            None if memory_id is None else 1,
        )
    )
    size, limit = envelope_size(envelope, seq), work.terms.max_message_bytes
    if size > limit:
        raise MessageTooLarge(
            f"the message has {size} bytes as JSON with its envelope; max_message_kib allows "
            f"{work.terms.max_message_kib} KiB ({limit} bytes): shorten it, or send a reference"
        )
    return envelope


def _thread(work: Work, operation: Append) -> str:
    """The root of the conversation; a message that is gone counts as its own root."""
    reply_to = operation.payload.reply_to
    if reply_to is None:
        return operation.message_id
    known = work.state.threads.get(reply_to)
    if known is None:
        known = work.store.rows.thread_of(reply_to) or reply_to
        work.state.remember_thread(reply_to, known)
    return known


def _accepted(operation: Append, receipt: Receipt, sent_at: str, *, duplicate: bool) -> Accepted:
    return Accepted(
        operation.ref,
        operation.message_id,
        Seq(receipt.seq),
        sent_at,
        duplicate,
        receipt.memory_id,
        receipt.revision,
    )


def _conflict(message_id: str, how: str) -> OperationIdConflict:
    return OperationIdConflict(
        f"the id {message_id!r} was used before, {how}; take a fresh id for another message"
    )
