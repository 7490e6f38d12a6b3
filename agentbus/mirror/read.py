"""Reading streams, bounded by count and bytes.

Redis bounds by count alone, so a read goes in steps: a small one first, then as many as the sizes
seen so far let expect. What was read beyond the bounds is left out.
"""

from __future__ import annotations

from typing import Final

import msgspec

from agentbus.errors import Unavailable
from agentbus.mirror import keys
from agentbus.mirror.resp import Command, Refused, Reply
from agentbus.model.ids import ChannelId, Seq, SessionId
from agentbus.wire.links import ChannelTop

FIRST_STEP: Final = 16
LARGEST_STEP: Final = 256
GROWTH: Final = 8
"""How many times larger than the one before it a step may be."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A message in its stream; `envelope` is its JSON."""

    seq: Seq
    session_id: SessionId
    envelope: bytes


class Page(msgspec.Struct, frozen=True):
    """What one read found, in stream order; `more` tells that the bounds ended it."""

    entries: list[Entry]
    more: bool


class Reading:
    """One read as a conversation without IO: `command`, then `take` its reply, until `done`.

    With `forward` it goes up from the position after `edge`, else down from the one before it
    (None: from the newest). An entry larger than `max_bytes` comes alone.
    """

    def __init__(
        self, channel: ChannelId, edge: Seq | None, *, forward: bool, count: int, max_bytes: int
    ) -> None:
        self._key = keys.stream(channel)
        self._edge = edge
        self._forward = forward
        self._count = count
        self._room = max_bytes
        self._read = 0
        self._step = min(FIRST_STEP, count + 1)
        self._entries: list[Entry] = []
        self._more = False
        self.done = False

    def command(self) -> Command:
        """What to ask next."""
        count = b"%d" % self._step
        if self._forward:
            start = b"(" + keys.entry_id(self._edge or Seq(0))
            return (b"XRANGE", self._key, start, b"+", b"COUNT", count)
        start = b"+" if self._edge is None else b"(" + keys.entry_id(self._edge)
        return (b"XREVRANGE", self._key, start, b"-", b"COUNT", count)

    def take(self, reply: Reply) -> None:
        """The reply to the last command. Raises Unavailable where Redis refused it."""
        if isinstance(reply, Refused):
            raise Unavailable(f"Redis refused a read: {reply.brief}")
        for identity, fields in reply:
            if not self._accept(entry(identity, fields)):
                self._more = self.done = True
                return
        if len(reply) < self._step:
            self.done = True
        else:
            self._edge = keys.position(reply[-1][0])
            self._step = self._next_step()

    def page(self) -> Page:
        """What was found, once it is `done`."""
        return Page(self._entries if self._forward else self._entries[::-1], self._more)

    def _accept(self, found: Entry) -> bool:
        size = len(found.envelope)
        if len(self._entries) == self._count or (self._entries and size > self._room):
            return False
        self._entries.append(found)
        self._room -= size
        self._read += size
        return True

    def _next_step(self) -> int:
        average = max(1, self._read // len(self._entries))
        fitting = max(0, self._room) // average + 1
        missing = self._count - len(self._entries) + 1
        return min(fitting, missing, self._step * GROWTH, LARGEST_STEP)


def entry(identity: bytes, fields: list[bytes]) -> Entry:
    """An entry from its id and fields as Redis lists them."""
    found = dict(zip(fields[::2], fields[1::2], strict=True))
    return Entry(keys.position(identity), SessionId(int(found[keys.SESSION])), found[keys.ENVELOPE])


class _Dated(msgspec.Struct):
    """The one member of an envelope that a channel's summary shows."""

    sent_at: str


_dated = msgspec.json.Decoder(_Dated)


def sent_at(envelope: bytes) -> str:
    """When the message of this envelope was sent."""
    return _dated.decode(envelope).sent_at


SURVEY_COMMANDS: Final = 3


def survey(channel: ChannelId) -> list[Command]:
    """Asks what a stream holds: `SURVEY_COMMANDS` commands, for `surveyed`."""
    key = keys.stream(channel)
    return [
        (b"XLEN", key),
        (b"XRANGE", key, b"-", b"+", b"COUNT", b"1"),
        (b"XREVRANGE", key, b"+", b"-", b"COUNT", b"1"),
    ]


def surveyed(channel: ChannelId, replies: list[Reply]) -> ChannelTop:
    """The channel as `survey` found it. Raises Unavailable where Redis refused."""
    for reply in replies:
        if isinstance(reply, Refused):
            raise Unavailable(f"Redis refused a read: {reply.brief}")
    count, oldest, newest = replies
    if not count:
        return ChannelTop(channel, 0, Seq(0), Seq(0), "")
    last = entry(*newest[0])
    return ChannelTop(channel, count, keys.position(oldest[0][0]), last.seq, sent_at(last.envelope))
