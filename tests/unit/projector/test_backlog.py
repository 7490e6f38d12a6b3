"""Commits wait in a chain, and what was evicted between them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentbus.model.ids import ChannelId, CommitId, Seq, SessionId
from agentbus.projector.backlog import MERGED_BYTES, MERGED_ROWS, Backlog, Eviction, Merged
from agentbus.wire.links import Boundary, Committed, RowInserted, Tombstoned


def rows(count: int, size: int = 1, channel: int = 1, first: int = 1) -> list[RowInserted]:
    return [
        RowInserted(ChannelId(channel), Seq(first + number), SessionId(1), b"x" * size)
        for number in range(count)
    ]


def committed(commit_id: int, added: list[RowInserted]) -> Committed:
    return Committed(CommitId(commit_id - 1), CommitId(commit_id), added)


def begun(commit_id: int = 0, **heads: int) -> Backlog:
    backlog = Backlog()
    places = {ChannelId(int(name[1:])): Seq(seq) for name, seq in heads.items()}
    backlog.start(CommitId(commit_id), places)
    return backlog


@given(st.lists(st.tuples(st.integers(0, 300), st.sampled_from([1, 5000, 40_000])), max_size=30))
def test_merging_keeps_order_and_bounds_and_never_cuts_a_commit(
    commits: list[tuple[int, int]],
) -> None:
    backlog = begun()
    told = [committed(number, rows(*shape)) for number, shape in enumerate(commits, start=1)]
    assert all(backlog.add(commit) for commit in told)
    merged = []
    while isinstance(batch := backlog.merge(), Merged):
        merged.append(batch)
    ends = [0, *(batch.commit_id for batch in merged)]
    assert ends[-1] == len(commits)
    for batch, start in zip(merged, ends, strict=False):
        parts = told[start : batch.commit_id]
        assert batch.changes.entries == [row for part in parts for row in part.rows]
        size = sum(len(row.envelope) for row in batch.changes.entries)
        assert len(parts) == 1 or (
            len(batch.changes.entries) <= MERGED_ROWS and size <= MERGED_BYTES
        )


def test_a_missing_commit_is_noticed_and_a_known_one_passed_over() -> None:
    backlog = begun(4)
    assert backlog.add(committed(4, rows(1)))
    assert backlog.add(committed(5, rows(1)))
    assert not backlog.add(committed(7, rows(1)))
    assert backlog.add(committed(6, rows(1)))
    merged = backlog.merge()
    assert isinstance(merged, Merged)
    assert merged.commit_id == 6
    assert not backlog


def test_an_eviction_keeps_its_place_among_the_commits() -> None:
    backlog = begun()
    boundary = Boundary(ChannelId(1), Seq(2))
    for number in (1, 2):
        backlog.add(committed(number, rows(1, first=number)))
    backlog.evict(Eviction([boundary]))
    backlog.add(committed(3, rows(1, first=3)))
    before, eviction, after = backlog.merge(), backlog.merge(), backlog.merge()
    assert isinstance(before, Merged)
    assert isinstance(after, Merged)
    assert (before.commit_id, eviction, after.commit_id) == (2, Eviction([boundary]), 3)
    assert backlog.merge() is None


MEMORIES = ChannelId(50)


def revision(seq: int, number: int) -> RowInserted:
    return RowInserted(MEMORIES, Seq(seq), SessionId(1), b"%d" % number, f"m{seq}", number)


def tombstone(seq: int, number: int) -> Tombstoned:
    return Tombstoned(MEMORIES, f"m{seq}", Seq(seq), number)


def test_commits_that_change_the_same_memory_are_one_change() -> None:
    backlog = begun(c50=4)
    told = [
        Committed(CommitId(0), CommitId(1), [revision(3, 2), revision(5, 1)], [tombstone(3, 1)]),
        Committed(CommitId(1), CommitId(2), [revision(3, 3)], [tombstone(3, 2)]),
        Committed(CommitId(2), CommitId(3), [revision(5, 2)], [tombstone(5, 1), tombstone(2, 4)]),
        Committed(CommitId(3), CommitId(4), [revision(6, 1), revision(7, 1)]),
        Committed(CommitId(4), CommitId(5), [], [tombstone(6, 1), tombstone(3, 3)]),
    ]
    assert all(backlog.add(commit) for commit in told)
    merged = backlog.merge()
    assert isinstance(merged, Merged)
    assert merged.changes.entries == [revision(5, 2), revision(7, 1)]
    assert merged.changes.edited == []
    assert merged.changes.deleted == [tombstone(2, 4), tombstone(3, 3)]


def test_a_memory_created_and_edited_in_one_commit_is_new_all_the_same() -> None:
    backlog = begun(c50=4)
    backlog.add(Committed(CommitId(0), CommitId(1), [revision(5, 2)], [tombstone(5, 1)]))
    merged = backlog.merge()
    assert isinstance(merged, Merged)
    assert (merged.changes.entries, merged.changes.edited) == ([revision(5, 2)], [])


def test_a_memory_that_came_and_went_within_one_commit_leaves_no_trace() -> None:
    backlog = begun(c50=4)
    backlog.add(Committed(CommitId(0), CommitId(1), [], [tombstone(5, 1), tombstone(5, 2)]))
    merged = backlog.merge()
    assert isinstance(merged, Merged)
    assert merged.changes.only_adds
    assert merged.changes.entries == []
