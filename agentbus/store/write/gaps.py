"""What retention took from subscriptions that had not come so far: gaps, exact for each.

Positions of an ordinary channel are dense, so what is missing between two positions is known. Own
messages among it are not lost, though, and their rows are gone: which positions were the session's
own is noted for its subscription in the transaction that deletes them, where they are after its
cursor. So the number of own messages is exact for every position that can still be asked about,
the cursor's or a later one.

`own_evicted.bits` has a bit for each position of a block of `BLOCK`, the first in bit 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agentbus.model.ids import ChannelId, Seq, SessionId, SubscriptionId
from agentbus.sqlite import Connection

BLOCK: Final = 4096

SELECT_BEHIND: Final = """
    SELECT id, position FROM subscriptions
    WHERE session_id = ? AND channel_id = ? AND position < ? AND expires_at > ?
"""
"""The cursor of a session in a channel, where it has not passed a position and not expired."""

SELECT_BITS: Final = """
    SELECT block, bits FROM own_evicted WHERE subscription_id = ? AND block BETWEEN ? AND ?
"""
"""Own positions in some blocks."""

REPLACE_BITS: Final = """
    INSERT OR REPLACE INTO own_evicted (subscription_id, block, bits) VALUES (?, ?, ?)
"""
"""Own positions of a block, more of them than before."""

SELECT_NEXT: Final = """
    SELECT min(seq) FROM messages INDEXED BY messages_by_position
    WHERE channel_id = ? AND seq > ? AND tombstone = 0
"""
"""The position of the next live message."""

FORGET: Final = "DELETE FROM own_evicted WHERE subscription_id = ?"
"""The cursor is gone."""

FORGET_PASSED: Final = f"""
    DELETE FROM own_evicted WHERE NOT EXISTS (
        SELECT 1 FROM subscriptions s
        WHERE s.id = subscription_id AND s.position < (block + 1) * {BLOCK} - 1
            AND s.expires_at > ?
    )
"""  # noqa: S608 - constants only
"""What lies before its cursor altogether, or belongs to one that has expired or is gone."""


class Gaps:
    """Own messages that are not there any more."""

    def __init__(self, connection: Connection) -> None:
        self._execute = connection.execute

    def evicted(self, rows: Iterable[tuple[ChannelId, SessionId, Seq]], now: int) -> None:
        """To be told of all ordinary rows that are deleted, in the transaction that does it."""
        groups: dict[tuple[SessionId, ChannelId], list[Seq]] = {}
        for channel, session, seq in rows:
            groups.setdefault((session, channel), []).append(seq)
        for (session, channel), seqs in groups.items():
            asked = (session, channel, max(seqs), now)
            behind = self._execute(SELECT_BEHIND, asked).fetchone()
            if behind is not None:
                self._note(behind[0], [seq for seq in seqs if seq > behind[1]])

    def _note(self, subscription: SubscriptionId, seqs: list[Seq]) -> None:
        blocks: dict[int, int] = {}
        for seq in seqs:
            block, place = divmod(seq, BLOCK)
            blocks[block] = blocks.get(block, 0) | 1 << place
        known = self._bits(subscription, min(blocks), max(blocks))
        for block, bits in blocks.items():
            merged = bits | known.get(block, 0)
            data = merged.to_bytes((merged.bit_length() + 7) // 8, "little")
            self._execute(REPLACE_BITS, (subscription, block, data))

    def _bits(self, subscription: SubscriptionId, first: int, last: int) -> dict[int, int]:
        found = self._execute(SELECT_BITS, (subscription, first, last))
        return {block: int.from_bytes(bits, "little") for block, bits in found}

    def own(self, subscription: SubscriptionId, after: Seq, before: Seq) -> int:
        """How many own messages between two positions retention removed; neither is counted."""
        first, last = after + 1, before - 1
        if first > last:
            return 0
        count = 0
        for block, bits in self._bits(subscription, first // BLOCK, last // BLOCK).items():
            start = max(first - block * BLOCK, 0)
            end = min(last - block * BLOCK, BLOCK - 1)
            count += ((bits >> start) & ((1 << (end - start + 1)) - 1)).bit_count()
        return count

    def next_live(self, channel: ChannelId, after: Seq) -> Seq | None:
        """The position of the next message there is; None where there is none."""
        found: Seq | None = self._execute(SELECT_NEXT, (channel, after)).fetchone()[0]
        return found

    def forget(self, subscription: SubscriptionId) -> None:
        """The cursor is gone."""
        self._execute(FORGET, (subscription,))

    def forget_passed(self, now: int) -> None:
        """Drops what nobody can ask about any more."""
        self._execute(FORGET_PASSED, (now,))
