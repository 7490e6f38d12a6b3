"""What the indexer needs of the two databases; SQLite is behind all of it.

Every call may raise StorageFailed (Busy among it), DatabaseDamaged or VersionMismatch, and may be
tried again; of the index also IndexDamaged, which is mended here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from agentbus.model.ids import CommitId
from agentbus.search.document import Document
from agentbus.search.fts5.schema import Mark, Partition
from agentbus.store.read import Chunk, Head
from agentbus.wire.links import RowInserted


class Source(Protocol):
    """The bus database, whose commits are followed; `store.read.Reader` is the real one."""

    def reopen(self) -> None:
        """The file may be another one now."""
        ...

    def head(self) -> Head:
        """The newest state."""
        ...

    def rows_after(self, commit_id: CommitId, limit_rows: int, limit_bytes: int) -> Chunk | None:
        """The live rows of the commits that follow, by id; None: `commit_id` is the newest."""
        ...


class Remains(Protocol):
    """What of a range of rows is left in the bus database: `store.lookup.Lookup`, really."""

    def has_messages(self, first: int, last: int) -> bool:
        """Whether any is an ordinary message."""
        ...

    def count_memories(self, first: int, last: int) -> int:
        """How many are current revisions."""
        ...

    def memory_rows(self, first: int, last: int) -> list[RowInserted]:
        """Those."""
        ...


class Index(Protocol):
    """The index file; `search.fts5.write.IndexWriter` is the real one."""

    @property
    def partitions(self) -> Sequence[Partition]:
        """Those of each kind in the order of their ranges, the oldest first."""
        ...

    @property
    def documents(self) -> int:
        """How many are in it."""
        ...

    @property
    def text_bytes(self) -> int:
        """How much text they had."""
        ...

    def open(self) -> Mark | None:
        """How far it goes; None: it is empty. A damaged file is put aside and made anew."""
        ...

    def put_aside(self) -> None:
        """The next `open` makes another."""
        ...

    def begin(self, mark: Mark) -> None:
        """Empties it; it is of this bus from now on."""
        ...

    def add(self, documents: Iterable[Document], commit_id: int) -> None:
        """Adds documents above those that are in; all of it or nothing."""
        ...

    def drop(self, partition: Partition) -> None:
        """Forgets a partition."""
        ...

    def rewrite(self, partitions: Sequence[Partition], documents: Sequence[Document]) -> None:
        """Puts neighbours together, with these documents only."""
        ...
