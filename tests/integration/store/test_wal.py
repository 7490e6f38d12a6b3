"""The WAL stays short beside readers; a full or damaged file is told from others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from agentbus import sqlite
from agentbus.config import Settings
from agentbus.errors import DatabaseDamaged
from agentbus.model.ids import CommitId
from agentbus.store.read import Reader
from tests.support.writer_world import World

MIB = 2**20


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path, Settings(sqlite_synchronous="normal")) as made:
        yield made


def wal_bytes(world: World) -> int:
    return os.stat(world.path + "-wal").st_size


def send(world: World, attachment: str, count: int) -> None:
    world.time += 0.02
    world.ask(*(world.append(attachment, f"m{world.ref()}", "x" * 32_000) for _ in range(count)))


def test_the_wal_stays_under_64_mib_beside_idle_readers(world: World) -> None:
    sam = world.register().attachment
    with ExitStack() as stack:
        readers = [stack.enter_context(closing(Reader(world.path))) for _ in range(20)]
        largest = 0
        for _ in range(60):
            for reader in readers:
                reader.head()
            send(world, sam, 100)
            largest = max(largest, wal_bytes(world))
    assert world.rows("SELECT count(*) FROM messages") == [(6000,)]
    assert largest < 40 * MIB
    assert world.effects == []


def test_the_wal_is_cut_again_after_a_reader_has_held_it_back(world: World) -> None:
    sam = world.register().attachment
    with closing(sqlite.open_reader(world.path)) as reader:
        with reader.snapshot():
            reader.execute("SELECT count(*) FROM messages").fetchone()
            while wal_bytes(world) < 36 * MIB:
                send(world, sam, 100)
        send(world, sam, 100)
        world.time += 0.2
        send(world, sam, 1)
        assert wal_bytes(world) <= sqlite.WAL_KEEP_BYTES


def test_a_projector_that_reads_while_the_writer_writes_holds_nothing_back(world: World) -> None:
    sam = world.register().attachment
    reached = CommitId(0)
    rows = 0
    with closing(Reader(world.path)) as reader:
        for _ in range(30):
            send(world, sam, 100)
            while (chunk := reader.rows_after(reached, 1000, 4 * MIB)) is not None:
                reached = chunk.commit_id
                rows += len(chunk.rows)
    assert rows == 3000
    assert wal_bytes(world) < 40 * MIB


def test_an_idle_writer_empties_the_wal_into_the_database(world: World) -> None:
    sam = world.register().attachment
    send(world, sam, 50)
    while world.core._tidy.at is not None:
        assert world.wake()
    with closing(sqlite.open_reader(world.path)) as reader:
        assert reader.file_bytes() > 50 * 32_000


def test_a_database_without_room_refuses_the_batch_whole(world: World) -> None:
    sam = world.register().attachment
    send(world, sam, 1)
    connection = world.store._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 10}")
    answers = world.ask(*(world.append(sam, f"x{n}", "y" * 9000) for n in range(20)))
    assert {answer.failure.code for answer in answers} == {"storage_error"}
    assert "free some space" in answers[0].failure.message
    connection.execute(f"PRAGMA max_page_count = {2**31 - 2}")
    answers = world.ask(*(world.append(sam, f"x{n}", "y" * 9000) for n in range(20)))
    assert [answer.seq for answer in answers] == list(range(2, 22))
    commits = world.committed()
    assert [commit.commit_id for commit in commits] == [1, 2]


def test_damage_inside_the_file_is_found_when_met(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        sam = world.register().attachment
        send(world, sam, 50)
        world.store.checkpoint("truncate")
        path = world.path
    size = os.stat(path).st_size
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    with pytest.raises(DatabaseDamaged):
        World(tmp_path)
