"""What commits did to memories, told to whoever has an older state."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbus.model.ids import ChannelId, CommitId, Seq
from agentbus.store import read
from agentbus.store.read import Reader
from agentbus.wire.links import Committed, MemoryDelete, MemoryEdit, RowInserted
from tests.support.writer_world import World

MEMORIES = ChannelId(2)
LARGE = 10**9

State = dict[tuple[int, int], bytes]
"""Envelopes by channel and position."""

operations = st.tuples(st.sampled_from(["send", "create", "edit", "edit", "delete"]), st.integers())
batches = st.lists(st.lists(operations, min_size=1, max_size=5), min_size=1, max_size=12)


class Bus:
    """A world in which several memories are changed in one commit."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.attachment = world.register().attachment
        self.memories: list[str] = []

    def commit(self, *asked: tuple[str, int]) -> list[Committed]:
        """These operations at once; `edit` and `delete` choose among the memories by number."""
        answers = self.world.ask(*(self._operation(*each) for each in asked))
        created = (getattr(answer, "memory_id", None) for answer in answers)
        self.memories += [each for each in created if each and each not in self.memories]
        return self.world.committed()

    def _operation(self, name: str, number: int) -> object:
        reference = self.world.ref()
        if name in ("send", "create") or not self.memories:
            channel = "general" if name == "send" else "memory"
            return self.world.append(self.attachment, f"m{reference}", channel=channel)
        memory = self.memories[number % len(self.memories)]
        asked = (reference, self.attachment, memory, f"m{reference}", b"%016d" % reference)
        return MemoryDelete(*asked) if name == "delete" else MemoryEdit(*asked, f"text {reference}")


def told(state: State, rows: list[RowInserted], deleted: list[tuple[int, int]]) -> State:
    """What a mirror holds that carries this out; new positions must come in their order."""
    after = dict(state)
    for row in rows:
        place = (row.channel_id, row.seq)
        newest = max((seq for channel, seq in after if channel == row.channel_id), default=0)
        assert place in after or row.seq > newest or row.revision != 1
        after[place] = row.envelope
    return {place: envelope for place, envelope in after.items() if place not in deleted}


def states(commits: list[Committed]) -> list[State]:
    """After each commit, the first before any."""
    found: list[State] = [{}]
    for commit in commits:
        kept = {(row.channel_id, row.seq) for row in commit.rows}
        gone = [(each.channel_id, each.seq) for each in commit.tombstones]
        found.append(told(found[-1], commit.rows, [place for place in gone if place not in kept]))
    return found


def caught_up(reader: Reader, state: State, commit: int, limit: int) -> State:
    reached = CommitId(commit)
    while events := reader.events_after(reached, limit, LARGE):
        assert events.commit_id > reached
        reached = events.commit_id
        state = told(state, events.rows, [(each.channel_id, each.seq) for each in events.deleted])
    return state


@settings(max_examples=25)
@given(batches, st.integers(1, 12))
def test_any_past_state_becomes_the_present_one(
    made: list[list[tuple[str, int]]], limit: int
) -> None:
    with TemporaryDirectory() as directory, World(Path(directory)) as world:
        bus, reader = Bus(world), Reader(world.path)
        commits = [commit for batch in made for commit in bus.commit(*batch)]
        history = states(commits)
        for number, state in enumerate(history):
            assert caught_up(reader, state, number, limit) == history[-1]
        reader.close()


@settings(max_examples=25)
@given(batches)
def test_memories_are_read_as_they_were_at_any_commit(made: list[list[tuple[str, int]]]) -> None:
    with TemporaryDirectory() as directory, World(Path(directory)) as world:
        bus, reader = Bus(world), Reader(world.path)
        commits = [commit for batch in made for commit in bus.commit(*batch)]
        for number, state in enumerate(states(commits)):
            memories = {seq: kept for (channel, seq), kept in state.items() if channel == MEMORIES}
            rows = reader.memory_rows(MEMORIES, Seq(0), CommitId(number), LARGE, LARGE)
            assert [(row.seq, row.envelope) for row in rows] == sorted(memories.items())
            assert reader.memory_extent(MEMORIES, CommitId(number)) == (
                len(memories),
                min(memories, default=0),
                max(memories, default=0),
            )
        reader.close()


def test_memories_are_read_in_pieces(world: World, reader: Reader) -> None:
    bus = Bus(world)
    bus.commit(*[("create", 0)] * 5)
    bus.commit(("edit", 1), ("delete", 2))

    def seqs(position: int, limit: int) -> list[int]:
        rows = reader.memory_rows(MEMORIES, Seq(position), CommitId(1), limit, LARGE)
        return [row.seq for row in rows]

    assert seqs(0, 3) == [1, 2, 3]
    assert seqs(3, 3) == [4, 5]
    assert seqs(5, 3) == []


def test_many_deletions_come_in_pieces_of_whole_commits(world: World, reader: Reader) -> None:
    bus = Bus(world)
    bus.commit(*[("create", 0)] * 12)
    for first in range(0, 12, 3):
        bus.commit(*[("delete", first + number) for number in range(3)])
    events = reader.events_after(CommitId(1), 4, LARGE)
    assert events is not None
    assert (len(events.deleted), events.commit_id) == (3, 2)
    events = reader.events_after(CommitId(1), 1, LARGE)
    assert events is not None
    assert (len(events.deleted), events.commit_id) == (3, 2)
    events = reader.events_after(CommitId(1), 6, LARGE)
    assert events is not None
    assert (len(events.deleted), events.commit_id) == (6, 3)


def test_a_channel_begins_at_its_oldest_message_or_after_its_last(
    world: World, reader: Reader
) -> None:
    bus = Bus(world)
    bus.commit(*[("send", 0)] * 4, ("create", 0))
    assert [(each.channel_id, each.oldest) for each in reader.boundaries()] == [(1, 1)]
    for below, oldest in ((3, 3), (9, 5)):
        with world.store.transaction():
            world.store._connection.execute(
                "DELETE FROM messages WHERE channel_id = 1 AND seq < ?", (below,)
            )
        assert [each.oldest for each in reader.boundaries()] == [oldest]


@pytest.mark.parametrize(
    "statement", [read.EVENTS_AFTER, read.DELETIONS_AFTER, read.MEMORY_ROWS, read.MEMORY_COUNT]
)
def test_queries_use_the_indexes_made_for_them(world: World, statement: str) -> None:
    marks = 3 if "?3" in statement else statement.count("?") if "?1" not in statement else 2
    plan = [row[3] for row in world.rows("EXPLAIN QUERY PLAN " + statement, *[1] * marks)]
    assert not any(step.startswith("SCAN messages") for step in plan), plan
    assert sum("SEARCH" in step for step in plan) >= statement.count("SELECT") - (
        statement == read.MEMORY_COUNT
    ), plan
