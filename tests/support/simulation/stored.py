"""What the database has ever held, looked at after every transaction by a reader of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

import msgspec

from agentbus import sqlite
from agentbus.model.ports import Instant
from tests.support.simulation.hooks import FORBIDDEN
from tests.support.simulation.records import Memory, Receipt, Row, Terms, require

ROWS: Final = """
    SELECT m.id, c.name, m.seq, m.message_id, m.commit_id, m.envelope, ifnull(s.native, ''),
        m.memory_id, m.revision, m.sent_at
    FROM messages m JOIN channels c ON c.id = m.channel_id
        LEFT JOIN sessions s ON s.id = m.session_id
    WHERE m.id > ? ORDER BY m.id
"""
RECEIPTS: Final = """
    SELECT id, operation_id, seq, accepted_at, session_id FROM receipts WHERE id > ? ORDER BY id
"""
SESSION: Final = "SELECT 1 FROM sessions WHERE id = ?"
ENDED: Final = """
    SELECT id, tombstone_commit_id FROM messages WHERE tombstone_commit_id IS NOT NULL
"""
FLOOR: Final = "SELECT purge_floor FROM meta"
USED: Final = "SELECT logical_bytes FROM meta"
IDS: Final = "SELECT id FROM messages"
RECEIPT_IDS: Final = "SELECT id FROM receipts"
MEMORIES: Final = "SELECT memory_id FROM messages WHERE memory_id IS NOT NULL AND tombstone = 0"


class Stored:
    """Rows and receipts by their ids, streams in order; `past` is of buses before a reset."""

    def __init__(self, database: str, terms: Terms, instant: Callable[[], Instant]) -> None:
        self.terms = terms
        self.rows: dict[str, Row] = {}
        """By message id."""
        self.streams: dict[str, list[Row]] = {}
        self.memories: dict[str, Memory] = {}
        self.receipts: dict[str, Receipt] = {}
        self.past: dict[bytes, str] = {}
        """Ids by envelope."""
        self.evicted = self.purged = self.forgotten = 0
        self.reset_at: float | None = None
        self.instant = instant
        self._database = database
        self._connection: sqlite.Connection | None = None
        self._begin()

    def _begin(self) -> None:
        self._by_id: dict[int, Row] = {}
        self._receipts_by_id: dict[int, Receipt] = {}
        self._present: set[int] = set()
        self._receipts_present: set[int] = set()
        self._ended: dict[int, int] = {}
        """Of revisions that were replaced or deleted, by row: the commit that did it."""
        self._last_id = self._last_receipt = self._last_commit = self._last_gone = 0

    def connection(self) -> sqlite.Connection:
        """The reader."""
        if self._connection is None:
            self._connection = sqlite.open_reader(self._database)
        return self._connection

    def close(self) -> None:
        """No more looks at this file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def wiped(self) -> bool:
        """The file was removed, or was not; what was in it is past, and another follows."""
        if self._connection is None or os.path.exists(self._database):
            return False
        self.close()
        self.past.update((row.envelope, row.message_id) for row in self._by_id.values())
        for known in (self.rows, self.streams, self.memories, self.receipts):
            known.clear()
        self.reset_at = self.instant().monotonic
        self._begin()
        return True

    def is_past(self, message: dict[str, object]) -> bool:
        """Whether a bus before a reset held exactly this."""
        return any(
            name == message["message_id"] and msgspec.json.decode(envelope) == message
            for envelope, name in self.past.items()
        )

    def is_forgotten(self, operation_id: str) -> bool:
        """Whether nobody can know any more what was done under that id, or who did it."""
        receipt = self.receipts.get(operation_id)
        if receipt is None or receipt.forgotten:
            return receipt is not None
        return self.connection().execute(SESSION, (receipt.session,)).fetchone() is None

    # ---- looking

    def look(self) -> None:
        """A transaction was committed."""
        connection = self.connection()
        for columns in connection.execute(RECEIPTS, (self._last_receipt,)).fetchall():
            self._remembered(Receipt(*columns))
        inserted = [Row(*each) for each in connection.execute(ROWS, (self._last_id,)).fetchall()]
        for row in inserted:
            self._inserted(row)
        if any(row.revision in (None, 1) for row in inserted):
            (used,) = connection.execute(USED).fetchone()
            require(used <= self.terms.budget, "more than fits", used, self.terms.budget)
        current = {identity for (identity,) in connection.execute(MEMORIES).fetchall()}
        for identity, memory in self.memories.items():
            if identity not in current and not memory.deleted:
                memory.deleted = memory.revisions[0].gone = True
                memory.revisions[-1].ended = self.instant().wall
        self._look_for_losses(connection)

    def _look_for_losses(self, connection: sqlite.Connection) -> None:
        present = {number for (number,) in connection.execute(IDS).fetchall()}
        (floor,) = connection.execute(FLOOR).fetchone()
        for number in sorted(self._present - present):
            self._removed(self._by_id[number])
            known = self._ended.pop(number, 0) <= floor
            require(known, "whoever is behind does not know of a deletion", number, floor)
        self._ended.update(connection.execute(ENDED).fetchall())
        self._present = present
        receipts = {number for (number,) in connection.execute(RECEIPT_IDS).fetchall()}
        for number in self._receipts_present - receipts:
            receipt = self._receipts_by_id[number]
            self._require_old(receipt.accepted_at, self.terms.receipts, "a receipt", receipt)
            receipt.forgotten = True
            self.forgotten += 1
        self._receipts_present = receipts

    def _remembered(self, receipt: Receipt) -> None:
        known = self.receipts.get(receipt.operation_id)
        require(known is None or known.forgotten, "an operation has two receipts", known, receipt)
        self.receipts[receipt.operation_id] = self._receipts_by_id[receipt.id] = receipt
        self._receipts_present.add(receipt.id)
        self._last_receipt = receipt.id

    def _inserted(self, row: Row) -> None:
        self._last_id = row.id
        stream = self.streams.setdefault(row.channel, [])
        receipt = self.receipts.get(row.message_id)
        require(receipt is not None and receipt.id == row.id, "a row without receipt", row, receipt)
        require(FORBIDDEN.encode() not in row.envelope, "denied, but stored", row)
        if row.revision is None or row.revision == 1:
            require(row.seq == len(stream) + 1, "a position is missing or taken twice", row)
            sender = msgspec.json.decode(row.envelope)["session"]
            require(sender == row.session, "sent under another name", row)
            stream.append(row)
        if row.memory_id is not None:
            self._revised(row, row.memory_id)
        known = self.rows.get(row.message_id)
        free = known is None or known.purged
        require(free, "an operation has two rows", known, row)
        require(row.commit_id >= self._last_commit, "commit numbers go back", row)
        self._last_commit = row.commit_id
        self.rows[row.message_id] = self._by_id[row.id] = row
        self._present.add(row.id)

    def _revised(self, row: Row, memory_id: str) -> None:
        memory = self.memories.setdefault(memory_id, Memory(row.channel, []))
        if not row.session:  # which has been forgotten since
            row.session = memory.revisions[0].session
        require(row.revision == len(memory.revisions) + 1, "a revision is missing", row)
        require(not memory.deleted, "a deleted memory lives again", row)
        if memory.revisions:
            memory.revisions[-1].ended = self.instant().wall
        memory.revisions.append(row)

    def _removed(self, row: Row) -> None:
        row.purged = True
        if row.memory_id is None:
            require(row.id > self._last_gone, "not the oldest first", row, self._last_gone)
            self._last_gone = row.id
            row.gone = True
            self.evicted += 1
            if not self.terms.tight:
                self._require_old(row.sent_at, self.terms.retention, "a message", row)
        else:
            ended = row.ended
            require(ended is not None, "a current revision was purged", row)
            assert ended is not None
            self._require_old(int(ended * 1000), self.terms.tombstones, "a tombstone", row)
            self.purged += 1

    def _require_old(self, since: int, lifetime: int, what: str, fact: object) -> None:
        now = int(self.instant().wall * 1000)
        require(now - since >= lifetime, f"{what} was removed too early", fact, now)
