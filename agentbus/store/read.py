"""Reading the bus database beside the writer: short, bounded reads, each of one state.

"Live" rows are those that are not tombstoned. Chunks never cut a commit in two.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from agentbus import sqlite
from agentbus.model.channel import ChannelInfo
from agentbus.model.ids import ChannelId, CommitId, Seq
from agentbus.store import schema
from agentbus.wire.links import RowInserted

HEAD: Final = "SELECT instance, commit_id, purge_floor FROM meta WHERE id = 1"
"""Which bus it is and how far it goes."""

CHANNELS: Final = "SELECT id, name, kind, last_seq FROM channels ORDER BY id"
"""Every channel, oldest first."""

_ROW: Final = "channel_id, seq, session_id, envelope, memory_id, revision, id"

ROWS_AFTER: Final = f"""
    SELECT commit_id, {_ROW} FROM messages INDEXED BY messages_by_commit
    WHERE commit_id > ? AND tombstone = 0 ORDER BY commit_id, id
"""  # noqa: S608 - constants only
"""Live rows of later commits, in the order in which they were accepted."""

CHANNEL_ROWS: Final = f"""
    SELECT {_ROW} FROM messages INDEXED BY messages_by_position
    WHERE channel_id = ? AND seq > ? AND tombstone = 0 AND commit_id <= ? ORDER BY seq
"""  # noqa: S608 - constants only
"""Live rows of one channel above a position, as of a commit, in stream order."""

EXTENT: Final = """
    SELECT ifnull(min(seq), 0), ifnull(max(seq), 0) FROM messages
    INDEXED BY messages_by_position WHERE channel_id = ? AND tombstone = 0
"""
"""Oldest and newest live position of a channel; 0 and 0 where there is none."""

HISTORY_BACKWARDS: Final = """
    SELECT envelope FROM messages INDEXED BY messages_by_position
    WHERE channel_id = ? AND seq > ? AND seq < ? AND tombstone = 0 ORDER BY seq DESC
"""
"""Live envelopes between two positions, newest first."""

HISTORY_FORWARDS: Final = """
    SELECT envelope FROM messages INDEXED BY messages_by_position
    WHERE channel_id = ? AND seq > ? AND seq < ? AND tombstone = 0 ORDER BY seq
"""
"""Live envelopes between two positions, oldest first."""

_END: Final = Seq(2**63 - 1)


class Head(msgspec.Struct, frozen=True):
    """Which bus the database is of and how far it goes.

    `purge_floor` is the highest tombstone commit ever purged: what is older cannot be caught up.
    """

    instance: str
    schema: int
    commit_id: CommitId
    purge_floor: CommitId


class Chunk(msgspec.Struct, frozen=True):
    """Rows of whole commits; `commit_id` is the last of these commits."""

    rows: list[RowInserted]
    commit_id: CommitId


class Reader:
    """The database as processes other than the writer see it.

    Opened at the first read. Raises StorageFailed (Busy among it), DatabaseDamaged,
    VersionMismatch; every call may be tried again.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: sqlite.Connection | None = None

    def _open(self) -> sqlite.Connection:
        if self._connection is None:
            connection = sqlite.open_reader(self._path)
            try:
                with sqlite.translated(self._path):
                    schema.require_current(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def reopen(self) -> None:
        """The file may be another one now: the next read opens it anew."""
        self.close()

    def close(self) -> None:
        """Gives the file up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def head(self) -> Head:
        """The newest state."""
        connection = self._open()
        with connection.snapshot():
            return _head(connection)

    def rows_after(self, commit_id: CommitId, limit_rows: int, limit_bytes: int) -> Chunk | None:
        """The live rows of the commits that follow, by id; None where there are no commits.

        Ends before the first commit that passes a limit; the first one is never cut.
        """
        connection = self._open()
        with connection.snapshot():
            newest = _head(connection).commit_id
            if newest <= commit_id:
                return None
            found = connection.execute(ROWS_AFTER, (commit_id,))
            return _whole_commits(found, newest, limit_rows, limit_bytes)

    def channel_infos(self) -> list[ChannelInfo]:
        """Every channel there is, in ascending order of its id."""
        connection = self._open()
        with sqlite.translated(self._path):
            return [ChannelInfo(*row) for row in connection.execute(CHANNELS)]

    def channels(self) -> list[ChannelId]:
        """The ids of every channel there is, in ascending order."""
        return [channel.id for channel in self.channel_infos()]

    def extent(self, channel: ChannelId) -> tuple[Seq, Seq]:
        """Oldest and newest live position of a channel; 0 and 0 where there is none."""
        connection = self._open()
        with sqlite.translated(self._path):
            oldest, newest = connection.execute(EXTENT, (channel,)).fetchone()
        return oldest, newest

    def channel_rows(
        self,
        channel: ChannelId,
        position: Seq,
        up_to: CommitId,
        limit_rows: int,
        limit_bytes: int,
    ) -> list[RowInserted]:
        """The live rows above a position of commits not above `up_to`, by position.

        At least one where there is any; empty: no more of them.
        """
        connection = self._open()
        rows: list[RowInserted] = []
        size = 0
        with connection.snapshot():
            for found in connection.execute(CHANNEL_ROWS, (channel, position, up_to)):
                row = RowInserted(*found)
                size += len(row.envelope)
                if rows and (size > limit_bytes or len(rows) >= limit_rows):
                    break
                rows.append(row)
        return rows

    def history(
        self, channel: ChannelId, before: Seq | None, after: Seq | None, limit: int, max_bytes: int
    ) -> tuple[list[bytes], bool]:
        """Envelopes with `after` < seq < `before` in stream order, and whether there are more.

        With `after` alone the oldest of them, else the newest. At least one where there is any.
        """
        forwards = after is not None and before is None
        bounds = (channel, after or 0, _END if before is None else before)
        connection = self._open()
        with connection.snapshot():
            found = connection.execute(HISTORY_FORWARDS if forwards else HISTORY_BACKWARDS, bounds)
            envelopes, more = _bounded(found, limit, max_bytes)
        return (envelopes if forwards else envelopes[::-1]), more


def _head(connection: sqlite.Connection) -> Head:
    instance, commit_id, purge_floor = connection.execute(HEAD).fetchone()
    return Head(instance, schema.SCHEMA, commit_id, purge_floor)


def _whole_commits(
    found: Iterator[tuple[Any, ...]], newest: CommitId, limit_rows: int, limit_bytes: int
) -> Chunk:
    rows: list[RowInserted] = []
    size = 0
    last = reached = CommitId(0)
    whole = 0  # rows of the commits up to `reached`
    for commit_id, *columns in found:
        if commit_id != last:
            whole, reached, last = len(rows), last, commit_id
        row = RowInserted(*columns)
        size += len(row.envelope)
        rows.append(row)
        if whole and (len(rows) > limit_rows or size > limit_bytes):
            return Chunk(rows[:whole], reached)
    return Chunk(rows, newest)


def _bounded(found: Iterator[tuple[bytes]], limit: int, max_bytes: int) -> tuple[list[bytes], bool]:
    envelopes: list[bytes] = []
    size = 0
    for (envelope,) in found:
        size += len(envelope)
        if envelopes and (len(envelopes) >= limit or size > max_bytes):
            return envelopes, True
        envelopes.append(envelope)
    return envelopes, False
