"""Whether a cleanup is under way, so that the writer's successor goes on with it."""

from __future__ import annotations

from typing import Final

from sqlite_utils import Database

ADD: Final = "ALTER TABLE meta ADD COLUMN cleaning INTEGER NOT NULL DEFAULT 0"
"""1 from the first chunk that makes room until the free target is reached."""


def apply(db: Database) -> None:
    """Adds the column."""
    db.conn.execute(ADD)
    db.conn.execute("PRAGMA user_version = 3")
