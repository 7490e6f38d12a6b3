"""The current envelope at one position, for whoever found the position in an index."""

from __future__ import annotations

from typing import Final

from agentbus.mirror import keys
from agentbus.mirror.resp import Command, Refused, Reply
from agentbus.model.ids import ChannelId, Seq

ONE: Final = (b"COUNT", b"1")


class Envelopes:
    """Commands that ask for envelopes, and their replies."""

    def ask(self, place: tuple[ChannelId, Seq], memory_id: str | None) -> Command:
        """Of a message its entry, of a memory its current content."""
        channel, seq = place
        if memory_id is not None:
            return (b"HGET", b"m:%d" % channel, memory_id.encode())
        entry = keys.entry_id(seq)
        return (b"XRANGE", keys.stream(channel), entry, entry, *ONE)

    def read(self, reply: Reply) -> bytes | None:
        """The envelope; None where it has gone."""
        if isinstance(reply, bytes):
            return reply
        if not isinstance(reply, list) or not reply or isinstance(reply, Refused):
            return None
        fields = reply[0][1]
        values = dict(zip(fields[::2], fields[1::2], strict=True))
        envelope: bytes | None = values.get(keys.ENVELOPE)
        return envelope
