"""What can be carried on from, and the steps to the present."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.mirror.survey import Survey
from agentbus.mirror.write import Mark
from agentbus.model.channel import ChannelInfo
from agentbus.model.ids import ChannelId, CommitId, Seq
from agentbus.projector import recover
from agentbus.projector.recover import STEP_ROWS, Purged
from agentbus.store.read import Head
from tests.support.memory_source import MEMORY_CHANNELS, MemorySource

HEAD = Head("bus", 3, CommitId(20), CommitId(5))
shapes = st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=60), max_size=30)


def filled(commits: list[list[int]]) -> MemorySource:
    source = MemorySource()
    for channels in commits:
        source.commit(*channels)
    return source


@pytest.mark.parametrize("commit_id", [5, 12, 20])
def test_the_past_of_the_same_bus_can_be_carried_on_from(commit_id: int) -> None:
    assert recover.doubt(recover.mark_of(HEAD).at(CommitId(commit_id)), HEAD) is None


@pytest.mark.parametrize(
    "mark",
    [
        None,
        Mark(b"other", b"3.2", b"20"),
        Mark(b"bus", b"2.1", b"20"),
        Mark(b"bus", b"3.1", b"20"),
        Mark(b"bus", b"3.2+1", b"20"),
        Mark(b"bus", b"3.2", b"4"),
        Mark(b"bus", b"3.2", b"21"),
        Mark(b"bus", b"3.2", b"rebuilding-2"),
        Mark(b"bus", b"3.2", b"nonsense"),
    ],
)
def test_anything_else_cannot(mark: Mark | None) -> None:
    assert recover.doubt(mark, HEAD) is not None


@given(shapes, st.integers(0, 30))
def test_catching_up_takes_every_later_row_once_and_in_order(
    commits: list[list[int]], known: int
) -> None:
    source = filled(commits)
    start = CommitId(min(known, len(commits)))
    mark = recover.mark_of(source.head())
    steps = list(recover.catch_up(source, mark.at(start), start))
    expected = [row for rows in source.commits[start:] for row in rows]
    assert [row for step in steps for row in step.changes.entries] == expected
    assert not steps or steps[-1].after == mark


@given(shapes)
def test_a_rebuild_takes_every_row_by_channel_and_only_its_last_step_names_a_commit(
    commits: list[list[int]],
) -> None:
    source = filled(commits)
    head = source.head()
    later = source.commit(1, 2)
    steps = list(recover.rebuild(source, recover.mark_of(head), head.commit_id))
    rows = [row for step in steps for row in step.changes.entries]
    expected = [row for rows in source.commits[:-1] for row in rows]
    assert rows == sorted(expected, key=lambda row: (row.channel_id, row.seq))
    assert all(row not in rows for row in later.rows)
    assert [step.after.commit_id for step in steps[:-1]] == [None] * (len(steps) - 1)
    assert steps[-1].after == recover.mark_of(head)
    assert all(len(step.changes.entries) == STEP_ROWS for step in steps[:-2])
    assert all(len(step.changes.entries) <= STEP_ROWS for step in steps)


FOUND = Survey(3, Seq(1), Seq(3), 0, "then")


def verified(source: MemorySource, channel: int, found: Survey, commit_id: int) -> bool:
    info = ChannelInfo(
        ChannelId(channel), "c", "memory" if channel in MEMORY_CHANNELS else "ordinary", Seq(0)
    )
    top = recover.verified(source, info, found, CommitId(commit_id))
    if top is None:
        return False
    assert (top.channel_id, top.count, top.oldest, top.top) == (
        channel,
        found.count,
        found.oldest,
        found.newest,
    )
    return True


@pytest.mark.parametrize(
    ("channel", "change", "whole"),
    [
        (1, {}, True),
        (1, {"count": 2}, False),
        (1, {"count": 2, "newest": 2}, False),
        (1, {"count": 2, "oldest": 2}, False),
        (1, {"count": 4, "newest": 4}, False),
        (1, {"count": 0, "oldest": 0, "newest": 0}, False),
        (1, {"contents": 1}, False),
        (8, {"count": 0, "oldest": 0, "newest": 0}, True),
        (2, {}, False),
    ],
)
def test_a_stream_is_whole_when_its_ends_and_its_count_are_the_databases(
    channel: int, change: dict[str, int], whole: bool
) -> None:
    source = filled([[1], [1, 2], [1], [1]])
    found = msgspec.structs.replace(FOUND, **change)
    assert verified(source, channel, found, 3) is whole


@pytest.mark.parametrize(
    ("oldest", "found", "whole"),
    [
        (2, (3, 1, 3), True),
        (3, (1, 3, 3), True),
        (2, (1, 3, 3), False),
        (2, (2, 1, 2), False),
        (4, (3, 1, 3), True),
        (6, (3, 1, 3), True),
        (6, (0, 0, 0), True),
        (6, (6, 1, 6), False),
    ],
)
def test_what_was_evicted_since_may_still_be_in_the_stream(
    oldest: int, found: tuple[int, int, int], whole: bool
) -> None:
    source = filled([[1], [1], [1], [1], [1]])
    source.evict(1, oldest)
    count, first, last = found
    assert verified(source, 1, Survey(count, Seq(first), Seq(last), 0, ""), 3) is whole


@pytest.mark.parametrize(
    ("found", "whole"),
    [
        ((3, 1, 3, 3), True),
        ((2, 1, 3, 2), False),
        ((3, 1, 3, 2), False),
        ((2, 2, 3, 2), False),
        ((3, 1, 4, 3), False),
        ((0, 0, 0, 0), False),
    ],
)
def test_memories_are_counted_as_they_were_at_the_commit(
    found: tuple[int, int, int, int], whole: bool
) -> None:
    source = filled([[50], [50, 50], [50]])
    source.edit("memory-2")
    source.delete("memory-1")
    source.delete("memory-4")
    count, first, last, contents = found
    survey = Survey(count, Seq(first), Seq(last), contents, "")
    assert verified(source, 50, survey, 2) is whole


def test_catching_up_makes_memories_what_they_are_now() -> None:
    source = filled([[50], [50]])
    start = recover.mark_of(source.head())
    source.transact([("edit", "memory-1"), ("add", 50), ("add", 50), ("delete", "memory-3")])
    source.delete("memory-2")
    source.edit("memory-4")
    (step,) = recover.catch_up(source, start, CommitId(2))
    current = source.current()
    assert step.changes.entries == [current["memory-4"]]
    assert step.changes.edited == [current["memory-1"]]
    assert [gone.memory_id for gone in step.changes.deleted] == ["memory-2"]


def test_catching_up_ends_where_the_database_has_forgotten_deletions() -> None:
    source = filled([[50], [50]])
    start = recover.mark_of(source.head())
    source.delete("memory-1")
    steps = recover.catch_up(source, start, CommitId(2))
    source.purge()
    with pytest.raises(Purged):
        next(steps)


def test_a_rebuild_shows_memories_as_of_its_commit() -> None:
    source = filled([[50, 1], [50]])
    head = source.head()
    before = source.current()
    source.edit("memory-1")
    source.delete("memory-2")
    source.commit(50)
    steps = list(recover.rebuild(source, recover.mark_of(head), head.commit_id))
    rows = [row for step in steps for row in step.changes.entries if row.memory_id]
    assert rows == list(before.values())
