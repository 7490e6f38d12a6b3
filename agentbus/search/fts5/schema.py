"""The index file.

    index_meta   of which bus it is and how far it goes, changed with what it covers
    partitions   ranges of row ids, each with a table `text_<number>`; ordinary messages apart from
                 memories, since the former go oldest first, and the latter stay
    text_<n>     contentless FTS5: what is in it cannot be changed or shown, only found. A row that
                 is gone from the bus is found until its partition is dropped whole.

The tokeniser `ascii` takes ASCII letters and digits and all beyond ASCII as they are: what a word
is, `search.normalise` has decided.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Final

import msgspec

from agentbus.errors import DatabaseDamaged
from agentbus.model.channel import Kind
from agentbus.search import document

APPLICATION_ID: Final = 0x61627369
"""`absi`, in the file's header."""

VERSION: Final = f"1.{document.VERSION}"
"""Raised when this page changes, so that an older file is made anew."""

META: Final = """
    CREATE TABLE IF NOT EXISTS index_meta (
        id        INTEGER PRIMARY KEY CHECK (id = 1),
        instance  TEXT NOT NULL,
        schema    TEXT NOT NULL,
        commit_id INTEGER NOT NULL
    )
"""

PARTITIONS: Final = """
    CREATE TABLE IF NOT EXISTS partitions (
        number     INTEGER PRIMARY KEY AUTOINCREMENT,
        kind       TEXT NOT NULL,
        first_id   INTEGER NOT NULL,
        last_id    INTEGER NOT NULL,
        documents  INTEGER NOT NULL,
        text_bytes INTEGER NOT NULL
    )
"""

CREATE_TEXT: Final = """
    CREATE VIRTUAL TABLE text_{number} USING fts5(words, parts, marks, content='', tokenize='ascii')
"""

TUNE_TEXT: Final = (
    "INSERT INTO text_{number} (text_{number}, rank) VALUES ('automerge', 16)",
    "INSERT INTO text_{number} (text_{number}, rank) VALUES ('crisismerge', 64)",
    "INSERT INTO text_{number} (text_{number}, rank) VALUES ('hashsize', 8388608)",
    "INSERT INTO text_{number} (text_{number}, rank) VALUES ('pgsz', 1000)",
)
"""Fewer merges than FTS5 makes of itself: a partition is small enough to be searched in pieces;
adding costs a third less, finding 0.05 ms more. What one transaction adds becomes one piece and not
several (a fifth less again), and pieces have small pages, of which finding a word reads one or two.
"""

SELECT_META: Final = "SELECT instance, schema, commit_id FROM index_meta WHERE id = 1"
"""How far the index goes; no row before it has begun."""

SELECT_PARTITIONS: Final = """
    SELECT number, kind, first_id, last_id, documents, text_bytes FROM partitions
    ORDER BY last_id DESC
"""
"""All partitions; of each kind the newest first, their ranges apart."""


SELECT_STATE: Final = """
    SELECT instance, schema, commit_id, number, kind, first_id, last_id, documents, text_bytes
    FROM index_meta LEFT JOIN partitions ORDER BY last_id DESC
"""
"""Both at once: how far the index goes beside each partition, or beside nothing."""


class IndexDamaged(Exception):
    """The index file is not what it should be; all of it can be made anew from the database."""


class Mark(msgspec.Struct, frozen=True):
    """Of which bus and schema the index is, and the last commit that is in it."""

    instance: str
    schema: str
    commit_id: int


class Partition(msgspec.Struct):
    """Documents of one kind whose row ids are from `first_id` to `last_id`."""

    number: int
    kind: Kind
    first_id: int
    last_id: int
    documents: int
    text_bytes: int

    @property
    def table(self) -> str:
        """Its FTS5 table."""
        return f"text_{self.number}"


@contextlib.contextmanager
def damage_told() -> Iterator[None]:
    """Within it, damage comes out as IndexDamaged."""
    try:
        yield
    except DatabaseDamaged as error:
        raise IndexDamaged(error.message) from error
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            raise IndexDamaged(str(error)) from error
        raise
