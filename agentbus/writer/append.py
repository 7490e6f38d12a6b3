"""Sending: receipts, size, threads, and the envelope, which is encoded here once and for all.

Everything that can refuse a message comes before the first change, so that a refused one leaves
nothing behind in a batch that goes on.
"""

from __future__ import annotations

from agentbus.model.message import Message
from agentbus.wire.links import Accepted, Append
from agentbus.writer import receipts
from agentbus.writer.envelopes import encoded
from agentbus.writer.state import Attached, Channel
from agentbus.writer.work import Work


def append(work: Work, operation: Append) -> Accepted:
    """Accepts a message, or tells again how it was accepted.

    Raises Recovering, StaleAttachment, OperationIdConflict, NotFound, MessageTooLarge,
    CapacityExhausted.
    """
    work.require_ready()
    state, message_id = work.state, operation.message_id
    attached = state.holder(operation.attachment)
    receipt = receipts.original(work, attached, message_id, operation.fingerprint)
    if receipt is not None:
        answer = receipts.told(operation.ref, receipt)
        assert isinstance(answer, Accepted)
        return answer
    channel = state.channel(operation.channel)
    memory_id, revision = None, None
    if channel.kind == "memory":
        memory_id, revision = work.terms.tokens.token(), 1
    thread = message_id
    if operation.payload.reply_to is not None:
        thread = _thread(work, operation.payload.reply_to)
    envelope = _envelope(work, operation, attached, channel, thread, memory_id)
    work.room.take(len(envelope))
    work.rows.insert(operation, attached.session.id, channel, thread, memory_id, envelope)
    work.size += len(envelope)
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
    return encoded(
        work.terms,
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
        ),
    )


def _thread(work: Work, reply_to: str) -> str:
    """The root of the conversation; a message that is gone counts as its own root."""
    known = work.state.threads.get(reply_to)
    if known is None:
        known = work.store.rows.thread_of(reply_to) or reply_to
        work.state.remember_thread(reply_to, known)
    return known
