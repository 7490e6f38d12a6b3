"""Statements that the writer's tests do not reach alone."""

from __future__ import annotations

import sqlite3

import pytest

from agentbus.store.write import rows as statements
from tests.support.writer_world import World


@pytest.mark.parametrize("count", [0, 1, 2, 8, 9, 63, 64, 65, 256, 257, 600])
def test_any_number_of_ids_is_looked_up(world: World, count: int) -> None:
    sam = world.register().attachment
    names = [f"m{number}" for number in range(count)]
    world.ask(*(world.append(sam, name) for name in names[::2]))
    rows = world.store.rows
    found = rows.receipts(names)
    assert set(found) == rows.taken(names) == set(names[::2])
    assert all(row[1] == name for name, row in found.items())


def test_look_ups_use_the_unique_indexes(world: World) -> None:
    for statement in (statements.SELECT_RECEIPTS, statements.SELECT_TAKEN):
        plan = world.rows("EXPLAIN QUERY PLAN " + statement.format(marks="?, ?"), "a", "b")
        assert "SEARCH" in plan[0][3]
        assert "INDEX sqlite_autoindex" in plan[0][3]


def test_logical_bytes_are_the_sum_over_all_rows(world: World) -> None:
    sam = world.register().attachment
    world.ask(world.append(sam, "é", "x" * 100), world.append(sam, "b", reply_to="é"))
    world.ask(world.append(sam, "c", "y", channel="memory"), world.append(sam, "d", reply_to="b"))
    world.ask(world.append(sam, "d", reply_to="b"))
    messages = world.rows(f"SELECT sum({statements.MESSAGE_BYTES}) FROM messages")[0][0]
    receipts = world.rows(f"SELECT sum({statements.RECEIPT_BYTES}) FROM receipts")[0][0]
    with world.store.snapshot():
        meta = world.store.bus.meta()
    assert meta.logical_bytes == messages + receipts
    assert (meta.messages, meta.memories, meta.receipts, meta.last_id) == (3, 1, 4, 4)


def test_the_database_itself_refuses_what_must_not_be(world: World) -> None:
    sam = world.register("n1", agent="Sam")
    world.register("n2", agent="Sam")
    world.ask(world.append(sam.attachment, "a"))
    connection = world.store._connection
    for statement in (
        "UPDATE sessions SET display_name = 'Sam'",
        "UPDATE sessions SET attachment = '1.1'",
        "UPDATE sessions SET native = 'n1'",
        "INSERT INTO messages SELECT 99, channel_id, seq, session_id, commit_id, sent_at, 'b',"
        " thread, reply_to, memory_id, revision, 0, NULL, NULL, envelope FROM messages",
        "INSERT INTO messages SELECT 99, channel_id, 99, session_id, commit_id, sent_at, 'a',"
        " thread, reply_to, memory_id, revision, 0, NULL, NULL, envelope FROM messages",
        "INSERT INTO meta (id, instance, created_at) VALUES (2, 'x', 0)",
        "UPDATE channels SET kind = 'other'",
    ):
        with pytest.raises(sqlite3.IntegrityError), world.store.transaction():
            connection.execute(statement)
