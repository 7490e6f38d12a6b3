"""The id of a row that was just inserted."""

from __future__ import annotations

import sqlite3


def row_id(cursor: sqlite3.Cursor) -> int:
    """Of an INSERT's cursor."""
    assert cursor.lastrowid is not None
    return cursor.lastrowid
