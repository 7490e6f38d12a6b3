"""Bounded reads beside the writer."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentbus.errors import StorageFailed
from agentbus.model.ids import ChannelId, CommitId, Seq
from agentbus.store.read import Head, Reader
from agentbus.store.schema import SCHEMA
from tests.support.writer_world import World

GENERAL = ChannelId(1)
LARGE = 10**9


def send(world: World, *commits: int, channel: str = "general", size: int = 10) -> None:
    """One commit for each number, with so many messages."""
    attachment = world.register(f"n{world.ref()}").attachment
    for count in commits:
        world.ask(
            *(
                world.append(attachment, f"m{world.ref()}", "x" * size, channel=channel)
                for _ in range(count)
            )
        )


def tombstone(world: World, seq: int) -> None:
    with world.store.transaction():
        world.store._connection.execute(
            "UPDATE messages SET tombstone = 1 WHERE channel_id = 1 AND seq = ?", (seq,)
        )


def seqs(envelopes: list[bytes]) -> list[int]:
    return [msgspec.json.decode(envelope)["seq"] for envelope in envelopes]


def test_the_head_moves_with_commits(world: World, reader: Reader) -> None:
    before = reader.head()
    assert before == Head(before.instance, SCHEMA, CommitId(0), CommitId(0))
    send(world, 3, 1)
    assert reader.head() == msgspec.structs.replace(before, commit_id=CommitId(2))


def test_what_writer_and_projector_are_told_and_what_is_read_is_the_same(
    world: World, reader: Reader
) -> None:
    send(world, 2, 1)
    send(world, 1, channel="memory")
    told = [row for commit in world.committed() for row in commit.rows]
    chunk = reader.rows_after(CommitId(0), LARGE, LARGE)
    assert chunk is not None
    assert chunk.rows == told
    assert chunk.commit_id == 3


def test_nothing_follows_the_newest_commit(world: World, reader: Reader) -> None:
    send(world, 2)
    assert reader.rows_after(CommitId(1), LARGE, LARGE) is None
    assert reader.rows_after(CommitId(7), LARGE, LARGE) is None


def test_chunks_end_before_the_commit_that_passes_a_limit(world: World, reader: Reader) -> None:
    send(world, 3, 3, 3)
    chunk = reader.rows_after(CommitId(0), 5, LARGE)
    assert chunk is not None
    assert (len(chunk.rows), chunk.commit_id) == (3, 1)
    chunk = reader.rows_after(CommitId(0), 6, LARGE)
    assert chunk is not None
    assert (len(chunk.rows), chunk.commit_id) == (6, 2)


def test_the_first_commit_is_never_cut(world: World, reader: Reader) -> None:
    send(world, 4, 1)
    chunk = reader.rows_after(CommitId(0), 1, 1)
    assert chunk is not None
    assert (len(chunk.rows), chunk.commit_id) == (4, 1)


def test_commits_whose_rows_are_gone_are_passed(world: World, reader: Reader) -> None:
    send(world, 1, 1)
    tombstone(world, 2)
    chunk = reader.rows_after(CommitId(1), LARGE, LARGE)
    assert chunk is not None
    assert (chunk.rows, chunk.commit_id) == ([], 2)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(limit_rows=st.integers(1, 12), limit_bytes=st.integers(1, 4000))
def test_chunks_of_any_size_add_up_to_everything(
    filled: Reader, limit_rows: int, limit_bytes: int
) -> None:
    found: list[int] = []
    reached = CommitId(0)
    while (chunk := filled.rows_after(reached, limit_rows, limit_bytes)) is not None:
        assert chunk.commit_id > reached
        reached = chunk.commit_id
        found += [row.seq for row in chunk.rows]
    assert found == list(range(1, 21))


@pytest.fixture
def filled(world: World, reader: Reader) -> Reader:
    send(world, 5, 1, 7, 2, 1, 4)
    return reader


def test_a_channel_is_read_by_position_as_of_a_commit(filled: Reader) -> None:
    def read(position: int, up_to: int, limit: int = LARGE, size: int = LARGE) -> list[int]:
        rows = filled.channel_rows(GENERAL, Seq(position), CommitId(up_to), limit, size)
        return [row.seq for row in rows]

    assert read(0, 6) == list(range(1, 21))
    assert read(0, 2) == [1, 2, 3, 4, 5, 6]
    assert read(4, 6, limit=3) == [5, 6, 7]
    assert read(0, 6, size=1) == [1]
    assert read(20, 6) == []


def test_channels_and_their_extent(world: World, reader: Reader) -> None:
    send(world, 3)
    assert [(info.name, info.last_seq) for info in reader.channel_infos()] == [
        ("general", 3),
        ("memory", 0),
    ]
    assert reader.channels() == [1, 2]
    tombstone(world, 1)
    assert reader.extent(GENERAL) == (2, 3)
    assert reader.extent(ChannelId(2)) == (0, 0)


@pytest.mark.parametrize(
    ("before", "after", "limit", "found", "more"),
    [
        (None, None, 5, [16, 17, 18, 19, 20], True),
        (None, None, 20, list(range(1, 21)), False),
        (4, None, 10, [1, 2, 3], False),
        (None, 2, 3, [3, 4, 5], True),
        (None, 18, 3, [19, 20], False),
        (8, 3, 2, [6, 7], True),
        (1, None, 5, [], False),
    ],
)
def test_history_comes_in_stream_order(
    filled: Reader,
    before: int | None,
    after: int | None,
    limit: int,
    found: list[int],
    more: bool,
) -> None:
    bounds = (None if before is None else Seq(before), None if after is None else Seq(after))
    envelopes, has_more = filled.history(GENERAL, *bounds, limit, LARGE)
    assert (seqs(envelopes), has_more) == (found, more)


def test_history_within_bytes_has_at_least_one(filled: Reader) -> None:
    envelopes, more = filled.history(GENERAL, None, None, 10, 1)
    assert (seqs(envelopes), more) == ([20], True)


def test_a_file_that_is_not_there_yet_may_come(tmp_path: Path) -> None:
    reader = Reader(str(tmp_path / "bus.sqlite3"))
    with pytest.raises(StorageFailed):
        reader.head()
    with World(tmp_path):
        assert reader.head().commit_id == 0
    reader.close()


def test_a_file_that_was_replaced_is_seen_after_reopening(tmp_path: Path) -> None:
    with World(tmp_path) as first:
        reader = Reader(first.path)
        send(first, 1)
        assert reader.head().commit_id == 1
    for name in tmp_path.iterdir():
        name.unlink()
    with World(tmp_path):
        reader.reopen()
        assert reader.head().commit_id == 0
    reader.close()


def test_queries_use_the_indexes_made_for_them(world: World) -> None:
    from agentbus.store import read

    for statement in (read.ROWS_AFTER, read.CHANNEL_ROWS, read.HISTORY_BACKWARDS, read.EXTENT):
        marks = statement.count("?")
        plan = world.rows("EXPLAIN QUERY PLAN " + statement, *[1] * marks)
        steps = [row[3] for row in plan]
        assert all("SEARCH" in step for step in steps), steps
        assert not any("TEMP B-TREE" in step for step in steps), steps
