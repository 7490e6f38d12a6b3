"""What a bus must hold and hand on, as a few dictionaries: rules without what can fail.

Times are the test's own, in seconds. Real time passes beside them, so that close to a limit either
side of it is right.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

HOUR = 3600.0
SLACK = 300.0
RETENTION = 168 * HOUR
IDLE = 72 * HOUR
RECEIPT = 72 * HOUR


@dataclass
class Entry:
    """A message, or a memory at its creation's place; `content` None: deleted."""

    seq: int
    message_id: str
    sender: str
    content: str | None
    at: float
    memory_id: str = ""
    revision: int = 1


@dataclass
class Held:
    """What a session was handed by the daemon of one channel and has not handed off."""

    position: int
    through: int
    messages: dict[int, dict[str, Any]] = field(default_factory=dict)
    gaps: list[dict[str, Any]] = field(default_factory=list)


class ModelBus:
    """Entries by channel and position."""

    def __init__(self) -> None:
        self.now = 0.0
        self.channels: dict[str, dict[int, Entry]] = {"general": {}, "memory": {}}

    def top(self, channel: str) -> int:
        """The newest position."""
        return max(self.channels[channel], default=0)

    def accept(self, channel: str, entry: Entry) -> None:
        """A send was answered. Positions are dense and never given out twice."""
        assert entry.seq == self.top(channel) + 1, f"{entry} comes after {self.top(channel)}"
        self.channels[channel][entry.seq] = entry

    def memories(self) -> list[Entry]:
        """Those that were not deleted."""
        return [entry for entry in self.channels["memory"].values() if entry.content is not None]

    def due(self, session: str, channel: str, position: int) -> list[int]:
        """Positions that a session is to be handed after one of its own, or told of as lost."""
        return [
            entry.seq
            for entry in self.channels[channel].values()
            if entry.seq > position and entry.sender != session and entry.content is not None
        ]

    def must_be_there(self, entry: Entry) -> bool:
        """Whether no retention can have taken it."""
        return self.now - entry.at < RETENTION - SLACK

    def check(self, session: str, channel: str, held: Held) -> None:
        """Everything due was handed over in order, as it is now, or is in a gap that counts it."""
        due = [seq for seq in self.due(session, channel, held.position) if seq <= held.through]
        lost = self._check_gaps(session, channel, held)
        assert list(held.messages) == sorted(held.messages)
        assert list(held.messages) == [seq for seq in due if seq not in lost]
        for seq, message in held.messages.items():
            entry = self.channels[channel][seq]
            assert message["content"] == entry.content, "an obsolete revision was served"
            assert message.get("revision", 1) == entry.revision

    def _check_gaps(self, session: str, channel: str, held: Held) -> set[int]:
        lost: set[int] = set()
        for gap in held.gaps:
            assert channel != "memory", gap
            gone = [
                seq
                for seq in self.due(session, channel, gap["after_seq"])
                if seq < gap["resumed_at_seq"]
            ]
            assert len(gone) == gap["lost"], (gap, gone)
            for seq in gone:
                assert not self.must_be_there(self.channels[channel][seq]), (gap, seq)
            assert lost.isdisjoint(gone)
            lost.update(gone)
        return lost
