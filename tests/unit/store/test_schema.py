"""Which file is ours, and migrations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentbus import sqlite
from agentbus.config import Settings
from agentbus.errors import StorageFailed, VersionMismatch
from agentbus.model.ports import Instant
from agentbus.store import migrations, schema
from agentbus.store.migrations import m0002_live_bytes
from agentbus.store.read import Reader
from agentbus.store.write import WriteStore
from agentbus.wire.links import MemoryEdit
from agentbus.writer.opening import open_store
from tests.support.writer_world import CountedTokens, World


def opened(path: str) -> WriteStore:
    return open_store(path, Settings(), CountedTokens(), Instant(0.0, 0.0))


def test_each_migration_counts_once_and_in_the_order_of_its_name() -> None:
    names = [migration.name for migration in migrations.build()._migrations]
    assert names == sorted(names)
    assert len(names) == schema.SCHEMA
    assert [int(name[1:5]) for name in names] == list(range(1, schema.SCHEMA + 1))


def test_a_file_that_is_current_is_not_migrated_again(world: World) -> None:
    before = world.rows("SELECT * FROM _sqlite_migrations")
    world.restart()
    assert world.rows("SELECT * FROM _sqlite_migrations") == before
    assert world.rows("SELECT count(*) FROM meta") == [(1,)]


def test_a_newer_schema_is_refused_by_everybody(world: World) -> None:
    with world.store.transaction():
        world.store._connection.execute(f"PRAGMA user_version = {schema.SCHEMA + 1}")
    with pytest.raises(VersionMismatch, match="newer agentbus"):
        opened(world.path)
    reader = Reader(world.path)
    with pytest.raises(VersionMismatch):
        reader.head()


def test_a_reader_waits_for_the_first_migration(tmp_path: Path) -> None:
    path = str(tmp_path / "bus.sqlite3")
    sqlite.open_writer(path, synchronous="full", application_id=1).close()
    with pytest.raises(StorageFailed):
        Reader(path).head()


def test_a_migration_that_is_cut_short_leaves_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "bus.sqlite3")

    class Failing(CountedTokens):
        def token(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_store(path, Settings(), Failing(), Instant(0.0, 0.0))
    opened(path).close()
    with World(tmp_path) as world:
        assert world.rows("SELECT name FROM channels") == [("general",), ("memory",)]


def test_a_new_file_carries_our_mark(world: World) -> None:
    assert world.rows("PRAGMA application_id") == [(schema.APPLICATION_ID,)]
    assert world.rows("PRAGMA user_version") == [(schema.SCHEMA,)]


def as_schema_1_left_it(world: World) -> None:
    """Takes back what came later; what is in the file stays."""
    with world.store.transaction():
        for statement in (
            "ALTER TABLE meta DROP COLUMN live_bytes",
            "ALTER TABLE meta DROP COLUMN cleaning",
            "DELETE FROM _sqlite_migrations WHERE name > 'm0002'",
            "PRAGMA user_version = 1",
        ):
            world.store._connection.execute(statement)
    world.store.close()


@pytest.fixture
def old(tmp_path: Path) -> Iterator[tuple[World, list[tuple[object, ...]], int]]:
    """A world whose file is of schema 1, the rows that are in it, and their live bytes."""
    with World(tmp_path) as world:
        sam = world.register().attachment
        world.ask(*(world.append(sam, f"m{n}", "x" * n) for n in range(10)))
        (memory,) = world.ask(world.append(sam, "k", "one", channel="memory"))
        world.ask(MemoryEdit(world.ref(), sam, memory.memory_id, "e", b"f", "two"))
        ((live,),) = world.rows("SELECT live_bytes FROM meta")
        rows = world.rows("SELECT * FROM messages ORDER BY id")
        as_schema_1_left_it(world)
        yield world, rows, live


def test_an_older_file_is_migrated_with_what_is_in_it(
    old: tuple[World, list[tuple[object, ...]], int],
) -> None:
    world, rows, live = old
    instance = world.core._instance
    with pytest.raises(StorageFailed, match="schema 1"):
        Reader(world.path).head()
    world.start()
    assert world.rows("SELECT instance FROM meta") == [(instance,)]
    assert world.rows("SELECT * FROM messages ORDER BY id") == rows
    assert world.rows("SELECT live_bytes FROM meta") == [(live,)]
    assert world.rows("PRAGMA user_version") == [(schema.SCHEMA,)]
    Reader(world.path).head()


def test_a_step_that_is_cut_short_leaves_the_older_file(
    old: tuple[World, list[tuple[object, ...]], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, rows, live = old
    with monkeypatch.context() as patch:
        patch.setattr(m0002_live_bytes, "COUNT", "SELECT no_such_column FROM meta")
        with pytest.raises(Exception, match="no_such_column"):
            world.start()
    with pytest.raises(StorageFailed, match="schema 1"):
        Reader(world.path).head()
    world.start()
    assert world.rows("SELECT * FROM messages ORDER BY id") == rows
    assert world.rows("SELECT live_bytes FROM meta") == [(live,)]
