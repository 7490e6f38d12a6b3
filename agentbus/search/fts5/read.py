"""Asking the index: candidates, newest or best first, some of which may be gone from the bus.

One search is one state of the index, read while it is asked for: who has enough stops. Where there
are words that are everywhere, a search of them reads little for the newest, and everything for the
best; a progress handler stops what takes longer than `Search.deadline`.
"""

from __future__ import annotations

import contextlib
import heapq
import sqlite3
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from agentbus import sqlite
from agentbus.errors import AgentbusError
from agentbus.search.fts5 import schema
from agentbus.search.fts5.render import expression
from agentbus.search.fts5.schema import Mark, Partition
from agentbus.search.request import MAX_RANKED, Request, following

STEPS: Final = 2000
"""Instructions of SQLite's between two looks at whether to stop: well below a millisecond."""

NEWEST: Final = """
    SELECT rowid, 0.0 FROM {table} WHERE {table} MATCH ? AND rowid BETWEEN ? AND ?
    ORDER BY rowid DESC
"""
"""What matches in a partition, newest first."""

BEST: Final = """
    SELECT rowid, -bm25({table}, 1.0, 0.5, 0.0) AS score FROM {table}
    WHERE {table} MATCH ? AND rowid BETWEEN ? AND ? ORDER BY score DESC, rowid DESC LIMIT ?
"""
"""What matches in a partition, best first; words count more than their parts, marks nothing."""

Candidate = tuple[int, float]
"""Row id and score, which is 0 where nothing is ranked."""


class Stopped(Exception):
    """The search was told to stop before it was through."""


class Range(msgspec.Struct, frozen=True):
    """Row ids, both included."""

    first: int
    last: int


class IndexReader:
    """A connection for one thread, opened at the first search.

    Raises StorageFailed, IndexDamaged.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: sqlite.Connection | None = None

    def close(self) -> None:
        """Gives the file up; the next search opens it anew."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextlib.contextmanager
    def searching(self, stop: Callable[[], bool]) -> Iterator[Search]:
        """One state of the index; `stop` is asked now and then and ends it with `Stopped`."""
        if self._connection is None:
            self._connection = sqlite.open_reader(self._path)
        connection, watch = self._connection, _Watch(stop)
        with schema.damage_told(), watch.told(), connection.snapshot():
            connection.set_progress_handler(watch.look, STEPS)
            try:
                yield Search(connection)
            finally:  # before the snapshot ends: a ROLLBACK that is stopped leaves it open
                connection.set_progress_handler(None, 0)


class _Watch:
    """Turns what SQLite raises once it was told to stop into `Stopped`.

    By what was told and not by the code: FTS5 stopped within a statement of its own raises others.
    """

    def __init__(self, stop: Callable[[], bool]) -> None:
        self._stop = stop
        self._stopped = False

    def look(self) -> bool:
        """The progress handler."""
        self._stopped = self._stopped or self._stop()
        return self._stopped

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Within it, errors come out as `Stopped` once it was told to stop."""
        try:
            yield
        except (sqlite3.Error, AgentbusError) as error:
            if self._stopped:
                raise Stopped from error
            raise


class Search:
    """A state of the index."""

    def __init__(self, connection: sqlite.Connection) -> None:
        self._execute = connection.execute
        rows = connection.execute(schema.SELECT_STATE).fetchall()
        self._partitions = [Partition(*row[3:]) for row in rows if row[3] is not None]
        self.mark = Mark(*rows[0][:3]) if rows else Mark("", "", 0)

    @property
    def newest(self) -> int:
        """The highest row id there is."""
        return max((partition.last_id for partition in self._partitions), default=0)

    def candidates(self, request: Request, within: Range) -> Iterator[Candidate]:
        """Rows that match, after the anchor of the request, in its order."""
        if request.query.nothing:
            return iter(())
        anchor = request.anchor
        last = within.last if anchor is None else min(within.last, anchor.newest)
        if request.is_ranked:
            ranked = list(self._best(request, Range(within.first, last)))
            return iter(following(ranked, anchor))
        if anchor is not None:
            last = min(last, anchor.last[0] - 1)
        return self._newest(request, Range(within.first, last))

    def _newest(self, request: Request, within: Range) -> Iterator[Candidate]:
        match = expression(request)
        kinds: dict[str, list[Partition]] = {}
        for partition in self._within(request, within):
            kinds.setdefault(partition.kind, []).append(partition)
        streams = [self._stream(partitions, match, within) for partitions in kinds.values()]
        return streams[0] if len(streams) == 1 else heapq.merge(*streams, reverse=True)

    def _stream(
        self, partitions: list[Partition], match: str, within: Range
    ) -> Iterator[Candidate]:
        for partition in partitions:
            statement = NEWEST.format(table=partition.table)
            yield from self._execute(statement, (match, within.first, within.last))

    def _best(self, request: Request, within: Range) -> Iterator[Candidate]:
        match = expression(request)
        streams = [
            self._execute(
                BEST.format(table=partition.table), (match, within.first, within.last, MAX_RANKED)
            )
            for partition in self._within(request, within)
        ]
        ranked = heapq.merge(*streams, key=lambda found: (-found[1], -found[0]))
        for _, candidate in zip(range(MAX_RANKED), ranked, strict=False):
            yield candidate

    def _within(self, request: Request, within: Range) -> Iterator[Partition]:
        """The partitions to look at, the newest first."""
        for partition in self._partitions:
            if request.kind is not None and partition.kind != request.kind:
                continue
            if partition.first_id <= within.last and partition.last_id >= within.first:
                yield partition
