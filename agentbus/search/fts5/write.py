"""Writing the index: only the indexer may import this module."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from agentbus import sqlite
from agentbus.model.channel import Kind
from agentbus.search.document import Document
from agentbus.search.fts5 import schema
from agentbus.search.fts5.schema import IndexDamaged, Mark, Partition

FULL: Final[dict[Kind, tuple[int, int]]] = {
    "ordinary": (16_384, 32 * 1024 * 1024),
    "memory": (2_048, 4 * 1024 * 1024),
}
"""Documents and text bytes at which the next partition begins. Those of memories are rewritten in
one go when most of what is in them is obsolete, so they are small."""

INSERT_MARK: Final = """
    INSERT OR REPLACE INTO index_meta (id, instance, schema, commit_id) VALUES (1, ?, ?, ?)
"""
"""The index begins again."""

UPDATE_COMMIT: Final = "UPDATE index_meta SET commit_id = ? WHERE id = 1"
"""The index goes further."""

INSERT_PARTITION: Final = """
    INSERT INTO partitions (kind, first_id, last_id, documents, text_bytes) VALUES (?, ?, ?, 0, 0)
"""
"""A range without documents."""

UPDATE_PARTITION: Final = """
    UPDATE partitions SET last_id = ?, documents = ?, text_bytes = ? WHERE number = ?
"""
"""A range has grown."""

DELETE_PARTITION: Final = "DELETE FROM partitions WHERE number = ?"
"""A range is forgotten."""


class IndexWriter:
    """The one read-write connection to the index. Raises StorageFailed (Busy among it), and
    IndexDamaged.

    A file that is damaged, or no index, is put aside and made anew, since all that is in it can be
    read from the database again. Failing changes leave the index as it was.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: sqlite.Connection | None = None
        self._partitions: list[Partition] = []

    def open(self) -> Mark | None:
        """Opens the file, makes it where need be; how far the index goes, None: it is empty."""
        self.close()
        try:
            return self._load()
        except IndexDamaged:
            self.put_aside()
            return self._load()

    def put_aside(self) -> None:
        """Gives the file up, beside the place where the next `open` makes another."""
        self.close()
        with contextlib.suppress(FileNotFoundError):
            os.replace(self._path, f"{self._path}.damaged")
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path + suffix)

    def close(self) -> None:
        """Gives the file up."""
        connection, self._connection = self._connection, None
        self._partitions = []
        if connection is not None:
            connection.close()

    def _load(self) -> Mark | None:
        with schema.damage_told():
            return self._open()

    def _open(self) -> Mark | None:
        connection = sqlite.open_writer(
            self._path, synchronous="normal", application_id=schema.APPLICATION_ID
        )
        self._connection = connection
        with connection.transaction():
            connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
            connection.execute(schema.META)
            connection.execute(schema.PARTITIONS)
        with sqlite.translated(self._path):
            self._partitions = _read_partitions(connection)
            row = connection.execute(schema.SELECT_META).fetchone()
        return Mark(*row) if row else None

    # ---- what is in it

    @property
    def partitions(self) -> Sequence[Partition]:
        """Those of each kind in the order of their ranges, the oldest first."""
        return self._partitions

    @property
    def documents(self) -> int:
        """How many were indexed, those that have gone from the bus since among them."""
        return sum(partition.documents for partition in self._partitions)

    @property
    def text_bytes(self) -> int:
        """How much text they had."""
        return sum(partition.text_bytes for partition in self._partitions)

    # ---- changes, one transaction each

    def begin(self, mark: Mark) -> None:
        """Empties the index; it is of this bus from now on."""
        with self._changing() as connection:
            for partition in tuple(self._partitions):
                self._remove(connection, partition)
            connection.execute(INSERT_MARK, (mark.instance, mark.schema, mark.commit_id))

    def add(self, documents: Iterable[Document], commit_id: int) -> None:
        """Adds documents in the order of their ids, all above those that are in; up to a commit."""
        kinds: dict[Kind, list[Document]] = {"ordinary": [], "memory": []}
        for document in documents:
            kinds[document.kind].append(document)
        with self._changing() as connection:
            for kind, found in kinds.items():
                self._append(connection, kind, found)
            connection.execute(UPDATE_COMMIT, (commit_id,))

    def drop(self, partition: Partition) -> None:
        """Forgets a whole partition."""
        with self._changing() as connection:
            self._remove(connection, partition)

    def rewrite(self, partitions: Sequence[Partition], documents: Sequence[Document]) -> None:
        """Puts neighbours together into one partition that has these documents of theirs."""
        first, last = partitions[0], partitions[-1]
        with self._changing() as connection:
            for partition in partitions:
                self._remove(connection, partition)
            if documents:
                made = _make(connection, first.kind, first.first_id)
                _insert(connection, made, documents, last.last_id)
            self._partitions = _read_partitions(connection)

    # ---- steps

    @contextlib.contextmanager
    def _changing(self) -> Iterator[sqlite.Connection]:
        """A transaction; where it fails, what is known of the partitions is read again."""
        connection = self._connection
        assert connection is not None, "the index is not open"
        try:
            with schema.damage_told(), connection.transaction():
                yield connection
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                self._partitions = _read_partitions(connection)
            if isinstance(error, sqlite3.DatabaseError):  # a sound index gives none
                raise IndexDamaged(str(error)) from error
            raise

    def _append(
        self, connection: sqlite.Connection, kind: Kind, documents: Sequence[Document]
    ) -> None:
        start = 0
        while start < len(documents):
            partition = self._open_partition(connection, kind, documents[start].id)
            most = FULL[kind][0] - partition.documents
            part = documents[start : start + most]
            _insert(connection, partition, part, part[-1].id)
            start += len(part)

    def _open_partition(
        self, connection: sqlite.Connection, kind: Kind, first_id: int
    ) -> Partition:
        newest = next((found for found in reversed(self._partitions) if found.kind == kind), None)
        most_documents, most_bytes = FULL[kind]
        if (
            newest is not None
            and newest.documents < most_documents
            and newest.text_bytes < most_bytes
        ):
            return newest
        made = _make(connection, kind, first_id)
        self._partitions.append(made)
        return made

    def _remove(self, connection: sqlite.Connection, partition: Partition) -> None:
        connection.execute(f"DROP TABLE {partition.table}")
        connection.execute(DELETE_PARTITION, (partition.number,))
        self._partitions = [found for found in self._partitions if found.number != partition.number]


def _read_partitions(connection: sqlite.Connection) -> list[Partition]:
    found = [Partition(*row) for row in connection.execute(schema.SELECT_PARTITIONS)]
    return found[::-1]


def _make(connection: sqlite.Connection, kind: Kind, first_id: int) -> Partition:
    number = connection.execute(INSERT_PARTITION, (kind, first_id, first_id)).lastrowid
    assert number is not None
    for statement in (schema.CREATE_TEXT, *schema.TUNE_TEXT):
        connection.execute(statement.format(number=number))
    return Partition(number, kind, first_id, first_id, 0, 0)


def _insert(
    connection: sqlite.Connection,
    partition: Partition,
    documents: Sequence[Document],
    last_id: int,
) -> None:
    connection.executemany(
        f"INSERT INTO {partition.table} (rowid, words, parts, marks) VALUES (?, ?, ?, ?)",  # noqa: S608 - a number
        [(found.id, found.words, found.parts, found.marks) for found in documents],
    )
    partition.last_id = last_id
    partition.documents += len(documents)
    partition.text_bytes += sum(found.text_bytes for found in documents)
    connection.execute(
        UPDATE_PARTITION,
        (last_id, partition.documents, partition.text_bytes, partition.number),
    )
