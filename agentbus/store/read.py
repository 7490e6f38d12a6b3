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
from agentbus.store.beside import Beside
from agentbus.wire.links import Boundary, RowInserted, Tombstoned

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

EVENTS_AFTER: Final = f"""
    SELECT commit_id, {_ROW} FROM messages INDEXED BY messages_by_commit
    WHERE commit_id > ? AND commit_id <= ? AND (tombstone = 0 OR revision = 1)
    ORDER BY commit_id, id
"""  # noqa: S608 - constants only
"""Live rows and creations of some commits, in the order in which they were accepted."""

DELETIONS_AFTER: Final = """
    SELECT gone.tombstone_commit_id, gone.channel_id, gone.memory_id, gone.seq, gone.revision
    FROM messages AS gone INDEXED BY messages_by_tombstone
    WHERE gone.tombstone_commit_id > ? AND NOT EXISTS (
        SELECT 1 FROM messages AS next
        WHERE next.memory_id = gone.memory_id AND next.revision = gone.revision + 1
    ) ORDER BY gone.tombstone_commit_id
"""
"""Memories that later commits deleted, in that order: their last revisions."""

CHANNEL_ROWS: Final = f"""
    SELECT {_ROW} FROM messages INDEXED BY messages_by_position
    WHERE channel_id = ? AND seq > ? AND tombstone = 0 AND commit_id <= ? ORDER BY seq
"""  # noqa: S608 - constants only
"""Live rows of one channel above a position, as of a commit, in stream order."""

MEMORY_ROWS: Final = f"""
    SELECT {_ROW} FROM messages INDEXED BY messages_by_position
    WHERE channel_id = ?1 AND seq > ?2 AND tombstone = 0 AND commit_id <= ?3
    UNION ALL
    SELECT {_ROW} FROM messages INDEXED BY messages_by_tombstone
    WHERE tombstone_commit_id > ?3 AND channel_id = ?1 AND seq > ?2 AND commit_id <= ?3
    ORDER BY seq
"""  # noqa: S608 - constants only
"""The revisions of a memory channel that were current as of a commit, in stream order."""

MEMORY_COUNT: Final = """
    SELECT count(*), ifnull(min(seq), 0), ifnull(max(seq), 0) FROM (
        SELECT seq FROM messages INDEXED BY messages_by_position
        WHERE channel_id = ?1 AND tombstone = 0 AND commit_id <= ?2
        UNION ALL
        SELECT seq FROM messages INDEXED BY messages_by_tombstone
        WHERE tombstone_commit_id > ?2 AND channel_id = ?1 AND commit_id <= ?2
    )
"""
"""How many memories a channel had as of a commit, and where the first and the last are."""

BOUNDARIES: Final = """
    SELECT id, ifnull((
        SELECT min(seq) FROM messages INDEXED BY messages_by_position
        WHERE channel_id = channels.id AND tombstone = 0
    ), last_seq + 1)
    FROM channels WHERE kind = 'ordinary' ORDER BY id
"""
"""The oldest position of each ordinary channel; past the last one where all are gone."""

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


class Events(msgspec.Struct, frozen=True):
    """What whole commits did, up to `commit_id`: rows that they inserted, and deleted memories.

    Of the revisions of a memory the rows have the first and the current one at least. What was
    tombstoned up to `purge_floor` may be missing.
    """

    rows: list[RowInserted]
    deleted: list[Tombstoned]
    commit_id: CommitId
    purge_floor: CommitId


class Reader(Beside):
    """The database as processes other than the writer see it."""

    def reopen(self) -> None:
        """The file may be another one now: the next read opens it anew."""
        self.close()

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

    def events_after(self, commit_id: CommitId, limit_rows: int, limit_bytes: int) -> Events | None:
        """What the commits that follow did; None where there are none.

        As `rows_after`, with the deletions counted among the rows.
        """
        connection = self._open()
        with connection.snapshot():
            head = _head(connection)
            if head.commit_id <= commit_id:
                return None
            deletions = connection.execute(DELETIONS_AFTER, (commit_id,))
            deleted, newest = _deletions(deletions, head.commit_id, limit_rows)
            found = connection.execute(EVENTS_AFTER, (commit_id, newest))
            chunk = _whole_commits(found, newest, limit_rows, limit_bytes)
        reached = chunk.commit_id
        gone = [memory for commit, memory in deleted if commit <= reached]
        return Events(chunk.rows, gone, reached, head.purge_floor)

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
        asked = (channel, position, up_to)
        return self._rows(CHANNEL_ROWS, asked, limit_rows, limit_bytes)

    def memory_rows(
        self,
        channel: ChannelId,
        position: Seq,
        up_to: CommitId,
        limit_rows: int,
        limit_bytes: int,
    ) -> list[RowInserted]:
        """The same of a memory channel, as it was at the commit `up_to`, whatever has become of it:
        the rows may be tombstoned by now."""
        asked = (channel, position, up_to)
        return self._rows(MEMORY_ROWS, asked, limit_rows, limit_bytes)

    def _rows(
        self, statement: str, asked: tuple[int, ...], limit_rows: int, limit_bytes: int
    ) -> list[RowInserted]:
        connection = self._open()
        rows: list[RowInserted] = []
        size = 0
        with connection.snapshot():
            for found in connection.execute(statement, asked):
                row = RowInserted(*found)
                size += len(row.envelope)
                if rows and (size > limit_bytes or len(rows) >= limit_rows):
                    break
                rows.append(row)
        return rows

    def memory_extent(self, channel: ChannelId, up_to: CommitId) -> tuple[int, Seq, Seq]:
        """How many memories a channel had as of a commit; the first and last position, or 0."""
        connection = self._open()
        with sqlite.translated(self._path):
            count, first, last = connection.execute(MEMORY_COUNT, (channel, up_to)).fetchone()
        return count, first, last

    def boundaries(self) -> list[Boundary]:
        """Where each ordinary channel begins by now."""
        connection = self._open()
        with sqlite.translated(self._path):
            return [Boundary(*row) for row in connection.execute(BOUNDARIES)]

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
    for commit_id, channel, seq, session, envelope, memory_id, revision, number in found:
        if commit_id != last:
            whole, reached, last = len(rows), last, commit_id
        rows.append(RowInserted(channel, seq, session, envelope, memory_id, revision, number))
        size += len(envelope)
        if whole and (len(rows) > limit_rows or size > limit_bytes):
            return Chunk(rows[:whole], reached)
    return Chunk(rows, newest)


def _deletions(
    found: Iterator[tuple[Any, ...]], newest: CommitId, limit: int
) -> tuple[list[tuple[CommitId, Tombstoned]], CommitId]:
    """Deletions with their commits, and the last commit of which all are among them."""
    deleted: list[tuple[CommitId, Tombstoned]] = []
    for commit_id, *columns in found:
        if len(deleted) >= limit and commit_id != deleted[0][0]:
            return [each for each in deleted if each[0] < commit_id], CommitId(commit_id - 1)
        deleted.append((commit_id, Tombstoned(*columns)))
    return deleted, newest


def _bounded(found: Iterator[tuple[bytes]], limit: int, max_bytes: int) -> tuple[list[bytes], bool]:
    envelopes: list[bytes] = []
    size = 0
    for (envelope,) in found:
        size += len(envelope)
        if envelopes and (len(envelopes) >= limit or size > max_bytes):
            return envelopes, True
        envelopes.append(envelope)
    return envelopes, False
