"""What can be carried on from, and the steps to the present."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.mirror.write import Mark
from agentbus.model.ids import ChannelId, CommitId, Seq
from agentbus.projector import recover
from agentbus.projector.recover import STEP_ROWS
from agentbus.store.read import Head
from agentbus.wire.links import ChannelTop
from tests.support.projector_world import MemorySource

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
        Mark(b"other", b"3.1", b"20"),
        Mark(b"bus", b"2.1", b"20"),
        Mark(b"bus", b"3.0", b"20"),
        Mark(b"bus", b"3.1", b"4"),
        Mark(b"bus", b"3.1", b"21"),
        Mark(b"bus", b"3.1", b"rebuilding-2"),
        Mark(b"bus", b"3.1", b"nonsense"),
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
    assert [row for step in steps for row in step.rows] == expected
    assert not steps or steps[-1].after == mark


@given(shapes)
def test_a_rebuild_takes_every_row_by_channel_and_only_its_last_step_names_a_commit(
    commits: list[list[int]],
) -> None:
    source = filled(commits)
    head = source.head()
    later = source.commit(1, 2)
    steps = list(recover.rebuild(source, head))
    rows = [row for step in steps for row in step.rows]
    expected = [row for rows in source.commits[:-1] for row in rows]
    assert rows == sorted(expected, key=lambda row: (row.channel_id, row.seq))
    assert all(row not in rows for row in later.rows)
    assert [step.after.commit_id for step in steps[:-1]] == [None] * (len(steps) - 1)
    assert steps[-1].after == recover.mark_of(head)
    assert all(len(step.rows) == STEP_ROWS for step in steps[:-2])
    assert all(len(step.rows) <= STEP_ROWS for step in steps)


TOP = ChannelTop(ChannelId(1), 3, Seq(1), Seq(3), "")


@pytest.mark.parametrize(
    ("change", "whole"),
    [
        ({}, True),
        ({"count": 2}, False),
        ({"count": 2, "top": 2}, False),
        ({"count": 2, "oldest": 2}, False),
        ({"count": 4, "top": 4}, False),
        ({"count": 0, "oldest": 0, "top": 0}, False),
        ({"channel_id": 8, "count": 0, "oldest": 0, "top": 0}, True),
        ({"channel_id": 8}, False),
    ],
)
def test_a_stream_is_whole_when_its_ends_and_its_count_are_the_databases(
    change: dict[str, int], whole: bool
) -> None:
    source = filled([[1], [1, 2], [1], [1]])
    found = msgspec.structs.replace(TOP, **change)
    assert recover.is_whole(source, found, CommitId(3)) is whole
