"""Deleting what retention, capacity and purge rules say, in chunks.

Ordinary rows go in the order of their ids, which is that of their age, since `sent_at` never goes
back. `logical_bytes` and `live_bytes` of the row about the bus are kept in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from agentbus.model.ids import ChannelId, CommitId, Seq, SessionId
from agentbus.sqlite import Connection
from agentbus.store.write.rows import MESSAGE_BYTES, RECEIPT_BYTES
from agentbus.wire.links import Boundary

SELECT_STORED: Final = "SELECT logical_bytes, live_bytes FROM meta WHERE id = 1"
"""How much there is."""

SELECT_OLDEST: Final = f"""
    SELECT id, channel_id, seq, session_id, sent_at, length(envelope), {MESSAGE_BYTES}
    FROM messages WHERE id > ? AND memory_id IS NULL ORDER BY id LIMIT ?
"""  # noqa: S608 - constants only
"""The oldest ordinary rows, whatever their channel."""

DELETE_ORDINARY: Final = "DELETE FROM messages WHERE id > ? AND id <= ? AND memory_id IS NULL"
"""A run of the oldest ordinary rows."""

SELECT_BOUNDARY: Final = """
    SELECT ifnull((SELECT min(seq) FROM messages INDEXED BY messages_by_position
                   WHERE channel_id = :channel AND tombstone = 0), last_seq + 1)
    FROM channels WHERE id = :channel
"""
"""The oldest position that is left in a channel."""

EVICTED: Final = """
    UPDATE meta SET messages = messages - :rows, evicted = evicted + :rows,
                    logical_bytes = logical_bytes - :logical, live_bytes = live_bytes - :live
    WHERE id = 1
"""
"""Counts deleted ordinary rows."""

SELECT_TOMBSTONES: Final = f"""
    SELECT id, tombstone_commit_id, tombstoned_at, {MESSAGE_BYTES} FROM messages
    INDEXED BY messages_by_tombstone
    WHERE tombstone_commit_id IS NOT NULL ORDER BY tombstone_commit_id, id LIMIT ?
"""  # noqa: S608 - constants only
"""The oldest tombstones."""

DELETE_MESSAGE: Final = "DELETE FROM messages WHERE id = ?"
"""One row."""

PURGED: Final = """
    UPDATE meta SET tombstones = tombstones - :rows, logical_bytes = logical_bytes - :logical,
                    purge_floor = max(purge_floor, :floor)
    WHERE id = 1
"""
"""Counts purged tombstones: no projection that is older than `floor` can be caught up."""

SELECT_RECEIPTS: Final = f"""
    SELECT id, accepted_at, {RECEIPT_BYTES} FROM receipts ORDER BY id LIMIT ?
"""  # noqa: S608 - constants only
"""The oldest receipts."""

DELETE_RECEIPTS: Final = "DELETE FROM receipts WHERE id <= ?"
"""The oldest receipts, up to one."""

FORGOTTEN: Final = """
    UPDATE meta SET receipts = receipts - :rows, logical_bytes = logical_bytes - :logical
    WHERE id = 1
"""
"""Counts receipts that were let go."""

MESSAGE_SIZES: Final = f"""
    SELECT count(*), ifnull(max(id), :after), ifnull(sum(bytes), 0), ifnull(sum(live), 0)
    FROM (SELECT id, {MESSAGE_BYTES} AS bytes, (1 - tombstone) * length(envelope) AS live
          FROM messages WHERE id > :after AND id <= :bound ORDER BY id LIMIT :limit)
"""  # noqa: S608 - constants only
"""Adds up message rows, a chunk at a time."""

RECEIPT_SIZES: Final = f"""
    SELECT count(*), ifnull(max(id), :after), ifnull(sum(bytes), 0), 0
    FROM (SELECT id, {RECEIPT_BYTES} AS bytes
          FROM receipts WHERE id > :after AND id <= :bound ORDER BY id LIMIT :limit)
"""  # noqa: S608 - constants only
"""Adds up receipts, a chunk at a time."""

CORRECT: Final = """
    UPDATE meta SET logical_bytes = logical_bytes + :logical, live_bytes = live_bytes + :live
    WHERE id = 1
"""
"""What was counted wrong."""


SELECT_CLEANING: Final = "SELECT cleaning FROM meta WHERE id = 1"
"""Whether a cleanup was begun and not ended."""

CLEANING: Final = "UPDATE meta SET cleaning = ? WHERE id = 1"
"""Notes that one is begun, or ended."""


class Victim(msgspec.Struct, frozen=True, array_like=True):
    """An ordinary row that may go; `live` and `logical` are its bytes."""

    id: int
    channel_id: ChannelId
    seq: Seq
    session_id: SessionId
    sent_at: int
    live: int
    logical: int


class Purgeable(msgspec.Struct, frozen=True, array_like=True):
    """A tombstoned revision."""

    id: int
    commit_id: CommitId
    tombstoned_at: int
    logical: int


class Receipt(msgspec.Struct, frozen=True, array_like=True):
    """A receipt."""

    id: int
    accepted_at: int
    logical: int


class Sizes(msgspec.Struct, frozen=True, array_like=True):
    """Of a chunk of rows that ends with id `last`."""

    rows: int
    last: int
    logical: int
    live: int


class Evictions:
    """Call it within a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._execute = connection.execute
        self._execute_many = connection.executemany

    def stored(self) -> tuple[int, int]:
        """Logical bytes, and those of live envelopes."""
        logical, live = self._execute(SELECT_STORED).fetchone()
        return logical, live

    def is_cleaning(self) -> bool:
        """Whether what is deleted to make room is not all deleted yet."""
        return bool(self._execute(SELECT_CLEANING).fetchone()[0])

    def cleaning(self, under_way: bool) -> None:
        """Notes it, for whoever goes on with it."""
        self._execute(CLEANING, (under_way,))

    def oldest(self, after: int, limit: int) -> list[Victim]:
        """The oldest ordinary rows with a higher id than `after`."""
        return [Victim(*row) for row in self._execute(SELECT_OLDEST, (after, limit))]

    def delete(self, after: int, victims: Sequence[Victim]) -> list[Boundary]:
        """Deletes these, which are all ordinary rows above `after` up to the last of them.

        Returns what is left of their channels.
        """
        self._execute(DELETE_ORDINARY, (after, victims[-1].id))
        counts = {
            "rows": len(victims),
            "logical": sum(victim.logical for victim in victims),
            "live": sum(victim.live for victim in victims),
        }
        self._execute(EVICTED, counts)
        channels = sorted({victim.channel_id for victim in victims})
        return [Boundary(channel, self.boundary(channel)) for channel in channels]

    def boundary(self, channel: ChannelId) -> Seq:
        """The oldest position left; past the last one where there is none."""
        return Seq(self._execute(SELECT_BOUNDARY, {"channel": channel}).fetchone()[0])

    def tombstones(self, limit: int) -> list[Purgeable]:
        """The oldest tombstones."""
        return [Purgeable(*row) for row in self._execute(SELECT_TOMBSTONES, (limit,))]

    def purge(self, tombstones: Sequence[Purgeable]) -> None:
        """Deletes these, the oldest, for good."""
        self._execute_many(DELETE_MESSAGE, [(row.id,) for row in tombstones])
        counts = {
            "rows": len(tombstones),
            "logical": sum(row.logical for row in tombstones),
            "floor": max(row.commit_id for row in tombstones),
        }
        self._execute(PURGED, counts)

    def receipts(self, limit: int) -> list[Receipt]:
        """The oldest receipts."""
        return [Receipt(*row) for row in self._execute(SELECT_RECEIPTS, (limit,))]

    def forget(self, receipts: Sequence[Receipt]) -> None:
        """Deletes these, the oldest."""
        self._execute(DELETE_RECEIPTS, (receipts[-1].id,))
        logical = sum(row.logical for row in receipts)
        self._execute(FORGOTTEN, {"rows": len(receipts), "logical": logical})

    def message_sizes(self, after: int, bound: int, limit: int) -> Sizes:
        """Adds up the next message rows with ids in (after, bound]."""
        at = {"after": after, "bound": bound, "limit": limit}
        return Sizes(*self._execute(MESSAGE_SIZES, at).fetchone())

    def receipt_sizes(self, after: int, bound: int, limit: int) -> Sizes:
        """Adds up the next receipts likewise."""
        at = {"after": after, "bound": bound, "limit": limit}
        return Sizes(*self._execute(RECEIPT_SIZES, at).fetchone())

    def correct(self, logical: int, live: int) -> None:
        """Adds what was missing (or takes away what was too much)."""
        self._execute(CORRECT, {"logical": logical, "live": live})
