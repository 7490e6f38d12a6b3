"""Reading streams, bounded by count and bytes.

Redis bounds by count alone, so a read goes in steps: a small one first, then as many as the sizes
seen so far let expect. What was read beyond the bounds is left out. Of a memory channel the stream
says which memories there are; their contents are a second question of each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from agentbus.errors import Unavailable
from agentbus.mirror import keys
from agentbus.mirror.resp import Command, Refused, Reply
from agentbus.model.ids import ChannelId, Seq, SessionId

FIRST_STEP: Final = 16
LARGEST_STEP: Final = 256
GROWTH: Final = 8
"""How many times larger than the one before it a step may be."""


WHOLE: Final[Command] = (b"HMGET", keys.META, keys.INSTANCE, keys.COMMIT)
"""Asked after each step, in the same turn: without a mark somebody has emptied Redis, and what is
missing there is missing for no reason of ours. A write that is on its way then moves the commit,
but it does not say again of which bus it is."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A message in its stream; `envelope` is its JSON, of a memory that of its current revision."""

    seq: Seq
    session_id: SessionId
    envelope: bytes
    memory_id: str | None = None


class Page(msgspec.Struct, frozen=True):
    """What one read found, in stream order; `more` tells that the bounds ended it."""

    entries: list[Entry]
    more: bool


class _Reference(msgspec.Struct, frozen=True, gc=False):
    """An entry of a memory channel's stream."""

    seq: Seq
    session_id: SessionId
    memory_id: bytes


class Reading:
    """One read as a conversation without IO: `command`, then `take` its reply, until `done`.

    With `forward` it goes up from the position after `edge`, else down from the one before it
    (None: from the newest). An entry larger than `max_bytes` comes alone.
    """

    def __init__(
        self, channel: ChannelId, edge: Seq | None, *, forward: bool, count: int, max_bytes: int
    ) -> None:
        self._channel = channel
        self._key = keys.stream(channel)
        self._edge = edge
        self._forward = forward
        self._count = count
        self._bytes = self._room = max_bytes
        self._step = min(FIRST_STEP, count + 1)
        self._references: list[_Reference] = []
        self._entries: list[Entry] = []
        self._more = False
        self.done = False

    def command(self) -> Command:
        """What to ask next."""
        if self._references:
            wanted = [reference.memory_id for reference in self._references]
            return (b"HMGET", keys.contents(self._channel), *wanted)
        count = b"%d" % self._step
        if self._forward:
            start = b"(" + keys.entry_id(self._edge or Seq(0))
            return (b"XRANGE", self._key, start, b"+", b"COUNT", count)
        start = b"+" if self._edge is None else b"(" + keys.entry_id(self._edge)
        return (b"XREVRANGE", self._key, start, b"-", b"COUNT", count)

    def commands(self) -> list[Command]:
        """The same, and whether the reply can be believed."""
        return [self.command(), WHOLE]

    def take_all(self, replies: Sequence[Reply]) -> None:
        """The replies to `commands`. Raises Unavailable where nothing is to be learnt of them."""
        reply, mark = replies
        if isinstance(mark, Refused) or None in mark or not mark[1].isdigit():
            raise Unavailable("Redis does not hold what was written to it")
        self.take(reply)

    def take(self, reply: Reply) -> None:
        """The reply to the last command. Raises Unavailable where Redis refused it."""
        if isinstance(reply, Refused):
            raise Unavailable(f"Redis refused a read: {reply.brief}")
        if self._references:
            self._take_contents(reply)
        elif reply and keys.MEMORY in reply[0][1]:
            self._references = [_reference(*found) for found in reply]
        else:
            found = (entry(identity, fields) for identity, fields in reply)
            self._take(found, len(reply), keys.position(reply[-1][0]) if reply else None)

    def _take_contents(self, reply: Sequence[bytes | None]) -> None:
        references, self._references = self._references, []
        found = (
            Entry(reference.seq, reference.session_id, content, reference.memory_id.decode())
            for reference, content in zip(references, reply, strict=True)
            if content is not None  # else it was deleted since the stream was read
        )
        self._take(found, len(references), references[-1].seq)

    def _take(self, found: Iterable[Entry], read: int, last: Seq | None) -> None:
        """What a step that read so many entries, up to this one, has found."""
        entries, most, room = self._entries, self._count, self._room
        for each in found:
            size = len(each.envelope)
            if len(entries) == most or (size > room and entries):
                self._more = self.done = True
                return
            entries.append(each)
            room -= size
        self._room = room
        if read < self._step:
            self.done = True
        else:
            self._edge = last
            self._step = self._next_step()

    def page(self) -> Page:
        """What was found, once it is `done`."""
        return Page(self._entries if self._forward else self._entries[::-1], self._more)

    def _next_step(self) -> int:
        read = self._bytes - self._room
        average = max(1, read // max(1, len(self._entries)))
        fitting = max(0, self._room) // average + 1
        missing = self._count - len(self._entries) + 1
        return min(fitting, missing, self._step * GROWTH, LARGEST_STEP)


def entry(identity: bytes, fields: list[bytes]) -> Entry:
    """An entry of an ordinary channel from its id and fields as Redis lists them: as written."""
    _, envelope, _, session = fields
    return Entry(Seq(int(identity[:-2])), SessionId(int(session)), envelope)


def _reference(identity: bytes, fields: list[bytes]) -> _Reference:
    found = dict(zip(fields[::2], fields[1::2], strict=True))
    session = SessionId(int(found[keys.SESSION]))
    return _Reference(keys.position(identity), session, found[keys.MEMORY])


class Envelopes:
    """Single messages, found by their place; for searches."""

    def ask(self, place: tuple[ChannelId, Seq], memory_id: str | None) -> Command:
        """Asks for what is at a position; with a memory id, for its current revision."""
        channel, seq = place
        if memory_id is not None:
            return (b"HGET", keys.contents(channel), memory_id.encode())
        identity = keys.entry_id(seq)
        return (b"XRANGE", keys.stream(channel), identity, identity)

    def read(self, reply: Reply) -> bytes | None:
        """The envelope; None where it has gone. Raises Unavailable where Redis refused."""
        if isinstance(reply, Refused):
            raise Unavailable(f"Redis refused a read: {reply.brief}")
        if not reply or isinstance(reply, bytes):
            return reply or None
        return entry(*reply[0]).envelope


class _Dated(msgspec.Struct):
    """The one member of an envelope that a channel's summary shows."""

    sent_at: str


_dated = msgspec.json.Decoder(_Dated)


def sent_at(envelope: bytes) -> str:
    """When the message of this envelope was sent."""
    return _dated.decode(envelope).sent_at
