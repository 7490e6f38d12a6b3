"""Sending: receipts, size, threads, and the envelope, which is encoded here once and for all.

Everything that can refuse a message comes before the first change, so that a refused one leaves
nothing behind in a batch that goes on.
"""

from __future__ import annotations

from agentbus.errors import MessageTooLarge, OperationIdConflict, Recovering
from agentbus.model.message import Message, encode_envelope, envelope_size, rfc3339
from agentbus.store.write.rows import ReceiptRow
from agentbus.wire.links import Accepted, Append
from agentbus.writer.state import Attached, Channel
from agentbus.writer.work import Work


def append(work: Work, operation: Append) -> Accepted:
    """Accepts a message, or tells again how it was accepted.

    Raises Recovering, StaleAttachment, OperationIdConflict, NotFound, MessageTooLarge.
    """
    if work.not_ready is not None:
        raise Recovering(f"the bus is recovering ({work.not_ready}); try again shortly")
    state, message_id = work.state, operation.message_id
    attached = state.holder(operation.attachment)
    receipt = work.receipts.get(message_id)
    if receipt is not None:
        return _again(attached, operation, receipt)
    if message_id in work.taken:
        raise _conflict(message_id, "so long ago that its receipt has expired")
    channel = state.channel(operation.channel)
    memory_id, revision = None, None
    if channel.kind == "memory":
        memory_id, revision = work.terms.tokens.token(), 1
    thread = message_id
    if operation.payload.reply_to is not None:
        thread = _thread(work, operation.payload.reply_to)
    envelope = _envelope(work, operation, attached, channel, thread, memory_id)
    work.insert(operation, attached.session.id, channel, thread, memory_id, envelope)
    if thread != message_id:
        state.remember_thread(message_id, thread)
    return Accepted(
        operation.ref,
        message_id,
        channel.last_seq,
        work.sent_at_text,
        False,
        memory_id,
        revision,
    )


def _envelope(
    work: Work,
    operation: Append,
    attached: Attached,
    channel: Channel,
    thread: str,
    memory_id: str | None,
) -> bytes:
    payload, sender, seq = operation.payload, attached.sender, channel.last_seq + 1
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
    limit = work.terms.max_message_bytes
    if envelope_size(envelope, seq) > limit:
        raise MessageTooLarge(
            f"the message has {envelope_size(envelope, seq)} bytes as JSON with its envelope; "
            f"max_message_kib allows {work.terms.max_message_kib} KiB ({limit} bytes): shorten it, "
            "or send a reference"
        )
    return envelope


def _thread(work: Work, reply_to: str) -> str:
    """The root of the conversation; a message that is gone counts as its own root."""
    known = work.state.threads.get(reply_to)
    if known is None:
        known = work.store.rows.thread_of(reply_to) or reply_to
        work.state.remember_thread(reply_to, known)
    return known


def _again(attached: Attached, operation: Append, receipt: ReceiptRow) -> Accepted:
    _, message_id, session, fingerprint, _, seq, accepted_at, memory_id, revision = receipt
    if session != attached.session.id or fingerprint != operation.fingerprint:
        raise _conflict(message_id, "by another session or with another payload")
    sent_at = rfc3339(accepted_at)
    return Accepted(operation.ref, message_id, seq, sent_at, True, memory_id, revision)


def _conflict(message_id: str, how: str) -> OperationIdConflict:
    return OperationIdConflict(
        f"the id {message_id!r} was used before, {how}; take a fresh id for another message"
    )
