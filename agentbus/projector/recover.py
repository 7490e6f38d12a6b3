"""Recovery is one rule: what Redis holds is carried on from, or is cleared and done from nothing.

Both ways are a sequence of steps, each one transaction in Redis. The database is read as steps are
taken, so never more than the steps in flight is in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from agentbus.config import MIB
from agentbus.mirror.keys import LAYOUT
from agentbus.mirror.write import Mark
from agentbus.model.ids import CommitId, Seq
from agentbus.projector.ports import Source
from agentbus.store.read import Head
from agentbus.wire.links import ChannelTop, RowInserted

STEP_ROWS: Final = 256
STEP_BYTES: Final = 4 * MIB


class Step(msgspec.Struct, frozen=True):
    """Rows to add, and what Redis holds after them."""

    rows: list[RowInserted]
    after: Mark


def mark_of(head: Head) -> Mark:
    """What Redis says once it equals a database with this head."""
    schema = f"{head.schema}.{LAYOUT}"
    return Mark(head.instance.encode(), schema.encode(), b"%d" % head.commit_id)


def doubt(mark: Mark | None, head: Head) -> str | None:
    """Why Redis, which says `mark`, must be rebuilt; None: it can be caught up."""
    if mark is None:
        return "Redis is empty"
    if mark.commit_id is None:
        return "Redis was left in the middle of a rebuild"
    target = mark_of(head)
    if mark.instance != target.instance:
        return "Redis holds another bus"
    if mark.schema != target.schema:
        return "Redis holds another version's contents"
    if mark.commit_id > head.commit_id:
        return "Redis is ahead of the database"
    if mark.commit_id < head.purge_floor:
        return "Redis is older than what was purged from the database"
    return None


def is_whole(source: Source, found: ChannelTop, commit_id: CommitId) -> bool:
    """Whether a stream holds what its channel had at the commit that the mark names.

    The mark alone does not prove it: where a command of a transaction is refused, or a transaction
    is and one behind it is not, the mark moves nevertheless, and a projector that is killed before
    it has read the refusal leaves it so. Positions are dense, so both ends and the count tell.
    """
    if found.count != (found.top - found.oldest + 1 if found.count else 0):
        return False
    channel, before_top = found.channel_id, Seq(max(found.top - 1, 0))
    oldest = source.channel_rows(channel, Seq(0), commit_id, 1, 1)
    newest = source.channel_rows(channel, before_top, commit_id, 2, STEP_BYTES)
    if not found.count:
        return not oldest
    return [row.seq for row in (*oldest, *newest)] == [found.oldest, found.top]


def catch_up(source: Source, mark: Mark, commit_id: CommitId) -> Iterator[Step]:
    """From the commit of the mark, which is `commit_id`, to the newest one; whole commits."""
    while chunk := source.rows_after(commit_id, STEP_ROWS, STEP_BYTES):
        commit_id = chunk.commit_id
        yield Step(chunk.rows, mark.at(commit_id))


def rebuild(source: Source, head: Head) -> Iterator[Step]:
    """From nothing to the head, by channel and position; only the last step names a commit."""
    mark = mark_of(head)
    for number, rows in enumerate(_by_channel(source, head.commit_id), start=1):
        yield Step(rows, mark.rebuilding(number))
    yield Step([], mark)


def _by_channel(source: Source, up_to: CommitId) -> Iterator[list[RowInserted]]:
    """Steps that are full, but for the last, however few messages a channel has."""
    waiting: list[RowInserted] = []
    size = 0
    for channel in source.channels():
        position = Seq(0)
        while rows := source.channel_rows(
            channel, position, up_to, STEP_ROWS - len(waiting), STEP_BYTES - size
        ):
            position = rows[-1].seq
            waiting += rows
            size += sum(len(row.envelope) for row in rows)
            if len(waiting) >= STEP_ROWS or size >= STEP_BYTES // 2:
                yield waiting
                waiting, size = [], 0
    if waiting:
        yield waiting
