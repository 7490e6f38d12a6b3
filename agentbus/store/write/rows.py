"""Message rows and receipts.

They are written many at a time, as tuples in the order of their statement's columns. For each None
and each `bytes` that is bound, `sqlite3` looks for adapters, which takes longer than binding it: so
there is a statement without the columns that are mostly NULL, and blobs are bytearrays.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from agentbus.errors import InternalError
from agentbus.model.ids import ChannelId, CommitId, Seq, SessionId
from agentbus.sqlite import Connection

IdTaken = sqlite3.IntegrityError
"""What `Rows.append` raises where an id has a row or a receipt; nothing of it may be committed."""

ROW_BYTES: Final = 64

MESSAGE_BYTES: Final = """
    64 + length(envelope) + length(CAST(message_id AS BLOB))
    + ifnull(length(CAST(thread AS BLOB)), 0) + ifnull(length(CAST(reply_to AS BLOB)), 0)
    + ifnull(length(CAST(memory_id AS BLOB)), 0)
"""
"""Logical size of a message row: its texts, and `ROW_BYTES` for its numbers."""

RECEIPT_BYTES: Final = """
    64 + length(CAST(operation_id AS BLOB)) + ifnull(length(CAST(memory_id AS BLOB)), 0)
"""
"""Logical size of a receipt."""

ADVANCE_META: Final = """
    UPDATE meta SET
        last_id = ?, commit_id = ?, sent_at = ?,
        messages = messages + ?, memories = memories + ?, tombstones = tombstones + ?,
        receipts = receipts + ?, logical_bytes = logical_bytes + ?, live_bytes = live_bytes + ?
    WHERE id = 1
"""
"""Counts what a commit has inserted and tombstoned: an `Advance`."""

ADVANCE_CHANNEL: Final = "UPDATE channels SET last_seq = ? WHERE id = ? AND last_seq = ?"
"""Positions up to here are given out, if they were up to there: none is given out twice."""

INSERT_MESSAGE: Final = """
    INSERT INTO messages (id, channel_id, seq, session_id, commit_id, sent_at, message_id, thread,
                          reply_to, memory_id, revision, envelope)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
"""A reply, or a revision of a memory."""

INSERT_ROOT: Final = """
    INSERT INTO messages (id, channel_id, seq, session_id, commit_id, sent_at, message_id, envelope)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
"""An ordinary message that is no reply."""

TOMBSTONE: Final = """
    UPDATE messages SET tombstone = 1, tombstoned_at = ?, tombstone_commit_id = ? WHERE id = ?
"""
"""A revision is not current any more; its content stays until it is purged."""

SELECT_NEWEST: Final = """
    SELECT tombstone, id, channel_id, seq, session_id, revision, envelope FROM messages
    WHERE memory_id = ? ORDER BY revision DESC LIMIT 1
"""
"""The last revision of a memory; where that is tombstoned, the memory was deleted."""

INSERT_RECEIPT: Final = """
    INSERT INTO receipts (id, operation_id, session_id, fingerprint, channel_id, seq, accepted_at,
                          memory_id, revision, replaced)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
"""What a retry of the operation is answered with."""

INSERT_PLAIN_RECEIPT: Final = """
    INSERT INTO receipts (id, operation_id, session_id, fingerprint, channel_id, seq, accepted_at)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
"""The same of an ordinary message."""

SELECT_RECEIPTS: Final = """
    SELECT id, operation_id, session_id, fingerprint, channel_id, seq, accepted_at, memory_id,
           revision, replaced
    FROM receipts WHERE operation_id IN ({marks})
"""
"""The receipts of some operations."""

SELECT_TAKEN: Final = "SELECT message_id FROM messages WHERE message_id IN ({marks})"
"""Which of some ids have a row, with a receipt or not."""

SELECT_THREAD: Final = "SELECT ifnull(thread, message_id) FROM messages WHERE message_id = ?"
"""The thread of a message."""

_WIDTHS: Final = (1, 8, 64, 256)
"""Numbers of ids that one look-up is prepared for; few, so that the statements stay compiled."""


def _many(statement: str) -> dict[int, str]:
    return {width: statement.format(marks=", ".join("?" * width)) for width in _WIDTHS}


_RECEIPTS: Final = _many(SELECT_RECEIPTS)
_TAKEN: Final = _many(SELECT_TAKEN)


class Advance(msgspec.Struct, frozen=True):
    """What a commit of message rows does to the row about the bus."""

    last_id: int
    commit_id: CommitId
    sent_at: int
    messages: int
    memories: int
    tombstones: int
    receipts: int
    logical_bytes: int
    live_bytes: int


class Revision(msgspec.Struct, frozen=True):
    """A memory's current one; `session_id` is the session that created the memory."""

    id: int
    channel_id: ChannelId
    seq: Seq
    session_id: SessionId
    number: int
    envelope: bytes


def text_bytes(text: str | None) -> int:
    """What a text adds to the logical size of its row."""
    if text is None:
        return 0
    return len(text) if text.isascii() else len(text.encode())


RootRow = tuple[int, ChannelId, Seq, SessionId, CommitId, int, str, bytearray]
"""Of `INSERT_ROOT`."""

MessageRow = tuple[
    int,
    ChannelId,
    Seq,
    SessionId,
    CommitId,
    int,
    str,
    str | None,
    str | None,
    str | None,
    int | None,
    bytearray,
]
"""Of `INSERT_MESSAGE`."""

PlainReceiptRow = tuple[int, str, SessionId, bytes | bytearray, ChannelId, Seq, int]
"""Of `INSERT_PLAIN_RECEIPT`."""

ReceiptRow = tuple[
    int,
    str,
    SessionId,
    bytes | bytearray,
    ChannelId,
    Seq,
    int,
    str | None,
    int | None,
    int | None,
]
"""Of `INSERT_RECEIPT`."""

_INSERT_MESSAGE: Final = {8: INSERT_ROOT, 12: INSERT_MESSAGE}
_INSERT_RECEIPT: Final = {7: INSERT_PLAIN_RECEIPT, 10: INSERT_RECEIPT}


class Rows:
    """The message path."""

    def __init__(self, connection: Connection) -> None:
        self._execute = connection.execute
        self._execute_many = connection.executemany

    def receipts(self, operation_ids: Sequence[str]) -> dict[str, ReceiptRow]:
        """The receipts of those that have one."""
        return {row[1]: row for row in self._in(_RECEIPTS, operation_ids)}

    def taken(self, message_ids: Sequence[str]) -> set[str]:
        """Those that have a row."""
        return {row[0] for row in self._in(_TAKEN, message_ids)}

    def _in(self, statements: dict[int, str], ids: Sequence[str]) -> Iterator[Any]:
        start = 0
        while start < len(ids):
            part = ids[start : start + _WIDTHS[-1]]
            width = next(width for width in _WIDTHS if width >= len(part))
            padding = (None,) * (width - len(part))
            yield from self._execute(statements[width], (*part, *padding))
            start += len(part)

    def thread_of(self, message_id: str) -> str | None:
        """The thread of a message that still exists."""
        row = self._execute(SELECT_THREAD, (message_id,)).fetchone()
        return row[0] if row else None

    def current(self, memory_id: str) -> Revision | None:
        """A memory's current revision; None where it was deleted or never was."""
        found = self._execute(SELECT_NEWEST, (memory_id,)).fetchone()
        if found is None:
            return None
        tombstone, *columns = found
        return None if tombstone else Revision(*columns)

    def tombstone(self, row: int, now: int, commit_id: CommitId) -> None:
        """This revision is not current any more."""
        self._execute(TOMBSTONE, (now, commit_id, row))

    def append(
        self,
        messages: list[RootRow | MessageRow],
        receipts: list[PlainReceiptRow | ReceiptRow],
        tops: Sequence[tuple[Seq, ChannelId, Seq]],
        advance: Advance,
    ) -> None:
        """The rows of one commit. `tops`: new last position, channel, last position before.

        Raises IdTaken, and InternalError where a position would be given out twice.
        """
        for width, rows in itertools.groupby(messages, len):
            self._execute_many(_INSERT_MESSAGE[width], rows)
        for width, found in itertools.groupby(receipts, len):
            self._execute_many(_INSERT_RECEIPT[width], found)
        moved = self._execute_many(ADVANCE_CHANNEL, tops).rowcount
        if tops and moved != len(tops):
            raise InternalError("the database gives out other positions than the writer knows of")
        self._execute(ADVANCE_META, msgspec.structs.astuple(advance))
