from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agentbus.errors import StorageFailed
from agentbus.sqlite import open_writer
from agentbus.store.lookup import Lookup
from agentbus.store.schema import APPLICATION_ID
from agentbus.wire.links import MemoryDelete, MemoryEdit
from tests.support.writer_world import START, World


@pytest.fixture
def lookup(world: World) -> Iterator[Lookup]:
    with closing(Lookup(world.path)) as made:
        yield made


def send(world: World, *contents: str, channel: str = "general") -> None:
    attachment = world.register(f"n{world.time}").attachment
    for number, content in enumerate(contents):
        world.time += 10
        message_id = f"{channel}-{world.time}-{number}"
        world.ask(world.append(attachment, message_id, content, channel=channel))


def change(world: World, statement: str) -> None:
    made = open_writer(world.path, synchronous="normal", application_id=APPLICATION_ID)
    with closing(made) as connection, connection.transaction():
        connection.execute(statement)


def test_channels_are_known_by_name(world: World, lookup: Lookup) -> None:
    assert {name: info.kind for name, info in lookup.channels().items()} == {
        "general": "ordinary",
        "memory": "memory",
    }


def test_envelopes_are_those_of_live_rows(world: World, lookup: Lookup) -> None:
    send(world, "one", "two", "three")
    ids = [row[0] for row in world.rows("SELECT id FROM messages ORDER BY id")]
    change(world, f"UPDATE messages SET tombstone = 1 WHERE id = {ids[1]}")
    found = lookup.current([*ids, 999])
    assert list(found) == [ids[0], ids[2]]
    assert b'"one"' in found[ids[0]]
    assert lookup.current([]) == {}


def test_the_first_row_since_a_time_is_found_whatever_is_missing(
    world: World, lookup: Lookup
) -> None:
    send(world, *map(str, range(20)))
    rows = world.rows("SELECT id, sent_at FROM messages ORDER BY id")
    change(world, "DELETE FROM messages WHERE id % 3 = 0")
    left = world.rows("SELECT id, sent_at FROM messages ORDER BY id")
    times = [int(START * 1000) - 1, *(row[1] + shift for row in rows for shift in (-1, 0, 1))]
    for time in times:
        expected = [row[0] for row in left if row[1] >= time]
        found = lookup.first_since(time)
        assert [row[0] for row in left if row[0] >= found] == expected


def test_what_is_left_of_a_range_is_told(world: World, lookup: Lookup) -> None:
    send(world, "a", "b")
    send(world, "c", "d", channel="memory")
    ids = [row[0] for row in world.rows("SELECT id FROM messages ORDER BY id")]
    assert lookup.has_messages(0, ids[0])
    assert not lookup.has_messages(ids[2], 999)
    assert lookup.count_memories(0, 999) == 2
    assert [row.id for row in lookup.memory_rows(0, ids[2])] == [ids[2]]


def test_a_database_that_is_not_there_is_a_failure_to_try_again(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed):
        Lookup(str(tmp_path / "none")).channels()


def test_messages_and_memories_are_found_by_their_ids_as_they_are_now(
    world: World, lookup: Lookup
) -> None:
    sam = world.register("sam").attachment
    world.ask(world.append(sam, "m", "plain"))
    (memory,) = world.ask(world.append(sam, "first", "red", channel="memory"))
    edit = MemoryEdit(world.ref(), sam, memory.memory_id, "second", b"", "blue")
    world.ask(edit)
    message = lookup.message("m")
    assert message is not None
    assert b'"plain"' in message
    assert lookup.memory("m") is None
    for found in (
        lookup.memory(memory.memory_id),
        *(lookup.message(name) for name in (memory.memory_id, "first", "second")),
    ):
        assert found is not None
        assert b'"blue"' in found
    world.ask(MemoryDelete(world.ref(), sam, memory.memory_id, "third", b""))
    for name in (memory.memory_id, "first", "second", "nothing"):
        assert lookup.message(name) is None
        assert lookup.memory(name) is None
