"""Messages of a channel, as they are in its stream and on their way from there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from agentbus.model.ids import Seq, SessionId


class Entry(Protocol):
    """A message of a stream."""

    @property
    def seq(self) -> Seq:
        """Its position."""
        ...

    @property
    def session_id(self) -> SessionId:
        """The session that sent it."""
        ...

    @property
    def envelope(self) -> bytes:
        """It, as JSON."""
        ...


class Stream:
    """What is known of a channel's stream; shared by its subscriptions.

    `top` is the newest visible position, `stored` a position that the database is known to have.
    Positions below `oldest` were removed by retention; 0 where nothing is known of it. `dense`
    tells that there are no holes but those.
    """

    __slots__ = ("dense", "oldest", "stored", "top")

    def __init__(self, top: int = 0, *, dense: bool = True) -> None:
        self.top = Seq(top)
        self.stored = Seq(0)
        self.oldest = Seq(0)
        self.dense = dense


class Run:
    """Messages of one channel that became visible together, in order; the same for all."""

    __slots__ = ("bytes", "consecutive", "entries", "first", "last", "senders", "weights")

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self.first = entries[0].seq
        self.last = entries[-1].seq
        self.consecutive = self.last - self.first + 1 == len(entries)
        self.senders = {entry.session_id for entry in entries}
        self.weights = [(entry.seq, len(entry.envelope)) for entry in entries]
        self.bytes = sum(size for _, size in self.weights)


class Lost(msgspec.Struct, frozen=True):
    """A gap: `lost` messages after `after_seq`; the next one there is has `resumed_at_seq`."""

    after_seq: Seq
    resumed_at_seq: Seq
    lost: int


class Push(msgspec.Struct, frozen=True):
    """What goes to the adapter: a gap or messages; reporting `through` hands off all of it."""

    through: Seq
    entries: Sequence[Entry]
    gaps: Sequence[Lost] = ()

    def __bool__(self) -> bool:
        return bool(self.entries or self.gaps)
