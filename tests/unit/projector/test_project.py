"""Commits wait in a chain, and what streams hold is counted along."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentbus.model.ids import ChannelId, CommitId, Seq, SessionId
from agentbus.projector.project import MERGED_BYTES, MERGED_ROWS, Backlog, Tops
from agentbus.wire.links import ChannelTop, Committed, RowInserted


def rows(count: int, size: int = 1, channel: int = 1, first: int = 1) -> list[RowInserted]:
    return [
        RowInserted(ChannelId(channel), Seq(first + number), SessionId(1), b"x" * size)
        for number in range(count)
    ]


def committed(commit_id: int, added: list[RowInserted]) -> Committed:
    return Committed(CommitId(commit_id - 1), CommitId(commit_id), added)


@given(st.lists(st.tuples(st.integers(0, 300), st.sampled_from([1, 5000, 40_000])), max_size=30))
def test_merging_keeps_order_and_bounds_and_never_cuts_a_commit(
    commits: list[tuple[int, int]],
) -> None:
    backlog = Backlog()
    backlog.start(CommitId(0))
    told = [committed(number, rows(*shape)) for number, shape in enumerate(commits, start=1)]
    assert all(backlog.add(commit) for commit in told)
    merged = []
    while batch := backlog.merge():
        merged.append(batch)
    ends = [0, *(batch.commit_id for batch in merged)]
    assert ends[-1] == len(commits)
    for batch, start in zip(merged, ends, strict=False):
        parts = told[start : batch.commit_id]
        assert batch.rows == [row for part in parts for row in part.rows]
        size = sum(len(row.envelope) for row in batch.rows)
        assert len(parts) == 1 or (len(batch.rows) <= MERGED_ROWS and size <= MERGED_BYTES)


def test_a_missing_commit_is_noticed_and_a_known_one_passed_over() -> None:
    backlog = Backlog()
    backlog.start(CommitId(4))
    assert backlog.add(committed(4, rows(1)))
    assert backlog.add(committed(5, rows(1)))
    assert not backlog.add(committed(7, rows(1)))
    assert backlog.add(committed(6, rows(1)))
    merged = backlog.merge()
    assert merged is not None
    assert merged.commit_id == 6
    assert not backlog


def test_tops_count_what_is_added_to_what_was_found() -> None:
    tops = Tops()
    tops.start([ChannelId(2), ChannelId(1)])
    tops.found(ChannelTop(ChannelId(2), 3, Seq(5), Seq(7), "then"))
    dated = b'{"sent_at":"now"}'
    tops.add([RowInserted(ChannelId(2), Seq(8), SessionId(1), dated)])
    tops.add([RowInserted(ChannelId(9), Seq(4), SessionId(1), dated)])
    assert tops.list() == [
        ChannelTop(ChannelId(1), 0, Seq(0), Seq(0), ""),
        ChannelTop(ChannelId(2), 4, Seq(5), Seq(8), "now"),
        ChannelTop(ChannelId(9), 1, Seq(4), Seq(4), "now"),
    ]
    assert tops.list() == tops.list()
