"""Recovery is one rule: what Redis holds is carried on from, or is cleared and done from nothing.

Both ways are a sequence of steps, each one transaction in Redis. The database is read as steps are
taken, so never more than the steps in flight is in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from agentbus.config import MIB
from agentbus.mirror.keys import LAYOUT
from agentbus.mirror.read import sent_at
from agentbus.mirror.resp import Command
from agentbus.mirror.survey import Survey
from agentbus.mirror.write import Changes, Mark
from agentbus.model.channel import ChannelInfo
from agentbus.model.ids import ChannelId, CommitId, Seq
from agentbus.projector.memories import entries, net
from agentbus.projector.ports import Source
from agentbus.store.read import Head
from agentbus.wire.links import ChannelTop, Evicted, RowInserted

STEP_ROWS: Final = 256
STEP_BYTES: Final = 4 * MIB

_PURGED: Final = "Redis is older than what was purged from the database"


class Step(msgspec.Struct, frozen=True):
    """Changes, and what Redis holds after them.

    `removals` are commands for the documents of what is trimmed; `asked` tells that the measure is
    to be taken afterwards.
    """

    changes: Changes
    after: Mark
    removals: Sequence[Command] = ()
    asked: Evicted | None = None


class Purged(Exception):
    """The database does not know any more what was deleted since."""


def mark_of(head: Head, index: str = "") -> Mark:
    """What Redis says once it equals a database with this head; `index` names what documents are
    made of, where the server has an index of its own."""
    schema = f"{head.schema}.{LAYOUT}"
    if index:
        schema += f"+{index}"
    return Mark(head.instance.encode(), schema.encode(), b"%d" % head.commit_id)


def doubt(mark: Mark | None, head: Head, index: str = "") -> str | None:
    """Why Redis, which says `mark`, must be rebuilt; None: it can be caught up."""
    if mark is None:
        return "Redis is empty"
    if mark.commit_id is None:
        return "Redis was left in the middle of a rebuild"
    target = mark_of(head, index)
    if mark.instance != target.instance:
        return "Redis holds another bus"
    if mark.schema != target.schema:
        return "Redis holds another version's contents"
    if mark.commit_id > head.commit_id:
        return "Redis is ahead of the database"
    if mark.commit_id < head.purge_floor:
        return _PURGED
    return None


def verified(
    source: Source, channel: ChannelInfo, found: Survey, commit_id: CommitId
) -> ChannelTop | None:
    """What a stream holds, where that is what its channel had at the commit that the mark names;
    None where it is not. What was evicted from the database since may still be there.

    The mark alone does not prove it: where a command of a transaction is refused, or a transaction
    is and one behind it is not, the mark moves nevertheless, and a projector that is killed before
    it has read the refusal leaves it so. Positions are dense, so both ends and the count tell; of
    memories the database can still say how many there were. (Their contents: see `Writes`.)
    """
    if channel.kind == "memory":
        return _verified_memories(source, channel.id, found, commit_id)
    if found.contents or not _is_whole(source, channel.id, found, commit_id):
        return None
    return ChannelTop(channel.id, found.count, found.oldest, found.newest, found.newest_at)


def _is_whole(source: Source, channel: ChannelId, found: Survey, commit_id: CommitId) -> bool:
    if found.count != (found.newest - found.oldest + 1 if found.count else 0):
        return False
    before_newest = Seq(max(found.newest - 1, 0))
    newest = source.channel_rows(channel, before_newest, commit_id, 2, STEP_BYTES)
    oldest = source.channel_rows(channel, Seq(0), commit_id, 1, 1)
    if not oldest:  # nothing, or everything was evicted since: then all that is there goes
        return all(
            found.newest < boundary.oldest
            for boundary in source.boundaries()
            if boundary.channel_id == channel
        )
    return [row.seq for row in newest] == [found.newest] and found.oldest <= oldest[0].seq


def _verified_memories(
    source: Source, channel: ChannelId, found: Survey, commit_id: CommitId
) -> ChannelTop | None:
    extent = (found.count, found.oldest, found.newest)
    if found.contents != found.count or source.memory_extent(channel, commit_id) != extent:
        return None
    before_newest = Seq(max(found.newest - 1, 0))
    newest = source.memory_rows(channel, before_newest, commit_id, 1, 1)
    newest_at = sent_at(newest[0].envelope) if newest else ""
    return ChannelTop(channel, *extent, newest_at)


def catch_up(source: Source, mark: Mark, commit_id: CommitId) -> Iterator[Step]:
    """From the commit of the mark, which is `commit_id`, to the newest one; whole commits.

    Raises Purged where the database has meanwhile forgotten what was deleted since.
    """
    while events := source.events_after(commit_id, STEP_ROWS, STEP_BYTES):
        if commit_id < events.purge_floor:
            raise Purged(_PURGED)
        commit_id = events.commit_id
        yield Step(net(events.rows, events.deleted, _is_creation), mark.at(commit_id))


def _is_creation(row: RowInserted) -> bool:
    return row.revision == 1


def rebuild(source: Source, mark: Mark, up_to: CommitId) -> Iterator[Step]:
    """From nothing to the mark, which is at commit `up_to`, by channel and position; only the last
    step names a commit."""
    for number, rows in enumerate(_by_channel(source, up_to), start=1):
        yield Step(entries(rows), mark.rebuilding(number))
    yield Step(Changes([]), mark)


def _by_channel(source: Source, up_to: CommitId) -> Iterator[list[RowInserted]]:
    """Steps that are full, but for the last, however few messages a channel has."""
    waiting: list[RowInserted] = []
    size = 0
    for channel in source.channel_infos():
        read = source.memory_rows if channel.kind == "memory" else source.channel_rows
        position = Seq(0)
        while rows := read(
            channel.id, position, up_to, STEP_ROWS - len(waiting), STEP_BYTES - size
        ):
            position = rows[-1].seq
            waiting += rows
            size += sum(len(row.envelope) for row in rows)
            if len(waiting) >= STEP_ROWS or size >= STEP_BYTES // 2:
                yield waiting
                waiting, size = [], 0
    if waiting:
        yield waiting
