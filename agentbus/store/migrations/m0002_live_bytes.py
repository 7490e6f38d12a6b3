"""How much the projection has to hold, kept beside what the database holds."""

from __future__ import annotations

from typing import Final

from sqlite_utils import Database

ADD: Final = "ALTER TABLE meta ADD COLUMN live_bytes INTEGER NOT NULL DEFAULT 0"
"""Bytes of the envelopes of rows that are not tombstoned."""

COUNT: Final = """
    UPDATE meta SET live_bytes =
        (SELECT ifnull(sum(length(envelope)), 0) FROM messages WHERE tombstone = 0)
"""
"""Of the rows that are there."""


def apply(db: Database) -> None:
    """Adds the column and counts."""
    db.conn.execute(ADD)
    db.conn.execute(COUNT)
    db.conn.execute("PRAGMA user_version = 2")
