"""Encoding a message once and for all, within the size that is allowed."""

from __future__ import annotations

from agentbus.errors import MessageTooLarge
from agentbus.model.ids import Seq
from agentbus.model.message import Message, encode_envelope, envelope_size
from agentbus.writer.work import Terms


def encoded(terms: Terms, message: Message) -> bytes:
    """The envelope. Raises MessageTooLarge."""
    envelope = encode_envelope(message)
    size = envelope_size(envelope, Seq(message.seq))
    if size > terms.max_message_bytes:
        raise MessageTooLarge(
            f"the message has {size} bytes as JSON with its envelope; max_message_kib allows "
            f"{terms.max_message_kib} KiB ({terms.max_message_bytes} bytes): shorten it, or send "
            "a reference"
        )
    return envelope
