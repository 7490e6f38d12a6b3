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
YOUNG_BYTES = 8 << 20
"""The newest messages of this size together are spared by a cleanup for want of room: it ends where
three quarters of the smallest budget are used, of which Redis and the index take 2.5 bytes each."""


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
    bytes_through: int = 0
    """Of all content accepted so far."""


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
        self.floor = 0
        """Ordinary messages below this position are known to be gone, for ever."""
        self._accepted_bytes = 0

    def forget(self) -> None:
        """A new bus: nothing is left."""
        for entries in self.channels.values():
            entries.clear()
        self.floor = 0

    def top(self, channel: str) -> int:
        """The newest position."""
        return max(self.channels[channel], default=0)

    def accept(self, channel: str, entry: Entry) -> None:
        """A send was answered. Positions are dense and never given out twice."""
        assert entry.seq == self.top(channel) + 1, f"{entry} comes after {self.top(channel)}"
        self.channels[channel][entry.seq] = entry
        self._accepted_bytes += len(entry.content or "")
        entry.bytes_through = self._accepted_bytes

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
        after = self._accepted_bytes - entry.bytes_through
        return self.now - entry.at < RETENTION - SLACK and after < YOUNG_BYTES

    def is_visible_above(self, position: int) -> bool:
        """Whether an ordinary message above a position must be there."""
        entries = self.channels["general"].values()
        return any(self.must_be_there(entry) for entry in entries if entry.seq > position)

    def gone_below(self, position: int) -> None:
        """Somebody was told, or shown, that ordinary messages below a position are gone."""
        self.floor = max(self.floor, position)

    def check(self, session: str, channel: str, held: Held) -> None:
        """Everything due was handed over in order, as it is now, or is in a gap that counts it."""
        due = [seq for seq in self.due(session, channel, held.position) if seq <= held.through]
        lost: set[int] = set()
        for gap in held.gaps:
            gone = self.check_gap(session, channel, gap)
            assert lost.isdisjoint(gone)
            lost.update(gone)
        assert list(held.messages) == sorted(held.messages)
        there = [seq for seq in due if seq not in lost]
        assert list(held.messages) == there, f"{list(held.messages)} came instead of {there}"
        for seq, message in held.messages.items():
            self.check_content(self.channels[channel][seq], message)

    def check_gap(self, session: str, channel: str, gap: dict[str, Any]) -> list[int]:
        """A gap counts exactly what is gone, and what may be gone; the positions."""
        assert channel != "memory", gap
        due = self.due(session, channel, gap["after_seq"])
        gone = [seq for seq in due if seq < gap["resumed_at_seq"]]
        assert len(gone) == gap["lost"] > 0, (gap, gone)
        early = [seq for seq in gone if self.must_be_there(self.channels[channel][seq])]
        assert not early, f"{early} went too early: {gap}"
        self.gone_below(gap["resumed_at_seq"])
        return gone

    def check_content(self, entry: Entry, message: dict[str, Any]) -> None:
        """A message is what was sent, and a memory what it is now."""
        assert message["message_id"] == entry.message_id or entry.memory_id, (message, entry)
        assert entry.content is not None, "a deleted memory was served"
        if message.get("content_truncated"):
            assert message["content_length"] == len(entry.content)
            assert entry.content.startswith(message["content"])
        else:
            assert message["content"] == entry.content, "an obsolete revision was served"
        assert message.get("revision", 1) == entry.revision

    def check_stored(self, seen: list[dict[str, Any]]) -> None:
        """All that is left of the ordinary channel: whole from the oldest on, and nothing more."""
        entries = self.channels["general"]
        first = seen[0]["seq"] if seen else self.top("general") + 1
        assert first >= self.floor, f"{first} is back, and was gone below {self.floor}"
        there = {message["seq"]: message["message_id"] for message in seen}
        due = {seq: entry.message_id for seq, entry in entries.items() if seq >= first}
        assert there == due, f"the channel holds {there} instead of {due}"
        assert [message["seq"] for message in seen] == sorted(there)
        gone = [seq for seq in entries if seq < first and self.must_be_there(entries[seq])]
        assert not gone, f"{gone} went too early"
        self.gone_below(first)
