"""The mark says that there was a bus; an empty file beside it is a loss, not a beginning."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from agentbus import sqlite
from agentbus.config import Settings
from agentbus.errors import DatabaseDamaged, StorageFailed
from agentbus.model.ports import Instant
from agentbus.runtime.paths import instance_mark
from agentbus.store import schema
from agentbus.store.write import WriteStore
from agentbus.writer.mark import Founded, Mark
from agentbus.writer.opening import open_store
from tests.support.writer_world import CountedTokens, World

NOW = Instant(0.0, 1_000_000.0)


def opened(path: str) -> WriteStore:
    return open_store(path, Settings(), CountedTokens(), NOW)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "bus.sqlite3")


@pytest.fixture
def founded(path: str) -> str:
    """A database with a bus in it, closed."""
    opened(path).close()
    return path


def test_a_new_bus_is_marked_with_its_instance_for_the_user_alone(founded: str) -> None:
    store = opened(founded)
    found = Mark(founded).read()
    assert found == Founded(store.bus.meta().instance, "1970-01-12T13:46:40.000Z")
    store.close()
    assert stat.S_IMODE(os.stat(instance_mark(founded)).st_mode) == 0o600
    assert not os.path.exists(instance_mark(founded) + ".new")


@pytest.mark.parametrize("loss", ["deleted", "emptied", "cut to its header", "another file"])
def test_a_bus_that_is_gone_is_told_and_nothing_is_made_in_its_place(
    founded: str, loss: str
) -> None:
    Path(founded + "-wal").write_bytes(b"may be all that is left")
    if loss == "deleted":
        os.unlink(founded)
    elif loss == "emptied":
        os.truncate(founded, 0)
    else:
        os.unlink(founded)
        os.unlink(founded + "-wal")
        made = sqlite.open_writer(founded, synchronous="full", application_id=schema.APPLICATION_ID)
        made.close()
    before = {each.name: each.read_bytes() for each in Path(founded).parent.iterdir()}
    with pytest.raises(DatabaseDamaged, match=r"a bus .* was in it.*agentbus reset"):
        opened(founded)
    assert {each.name: each.read_bytes() for each in Path(founded).parent.iterdir()} == before


@pytest.mark.parametrize("content", [b"", b"{", b'{"instance": 1}', b"\xff" * 9000])
def test_a_mark_that_cannot_be_read_still_says_that_there_was_one(
    founded: str, content: bytes
) -> None:
    os.unlink(founded)
    Path(instance_mark(founded)).write_bytes(content)
    with pytest.raises(DatabaseDamaged, match="agentbus reset"):
        opened(founded)


def test_a_bus_without_a_mark_or_with_another_gets_its_own(founded: str) -> None:
    mark = Mark(founded)
    of_it = mark.read()
    for content in (None, b"garbage", b'{"instance":"other"}'):
        if content is None:
            os.unlink(mark.path)
        else:
            Path(mark.path).write_bytes(content)
        opened(founded).close()
        assert mark.read() == of_it


def test_the_mark_is_not_written_again_at_every_start(founded: str) -> None:
    before = os.stat(instance_mark(founded))
    opened(founded).close()
    assert os.stat(instance_mark(founded)).st_ino == before.st_ino


def test_a_mark_that_cannot_be_written_is_a_failure_of_the_storage(path: str) -> None:
    os.mkdir(f"{instance_mark(path)}.new")
    with pytest.raises(StorageFailed, match=r"instance cannot be written"):
        opened(path)
    os.rmdir(f"{instance_mark(path)}.new")
    opened(path).close()
    assert Mark(path).read() is not None


def test_what_the_mark_says_is_durable_before_it(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of what is synced: the bus, then the mark, then its name."""
    order: list[str] = []
    checkpoint = sqlite.Connection.checkpoint
    sync = os.fsync

    def checkpointed(self: sqlite.Connection, mode: str) -> bool:
        order.append("database")
        return checkpoint(self, "passive")

    def synced(descriptor: int) -> None:
        order.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "mark")
        sync(descriptor)

    monkeypatch.setattr(sqlite.Connection, "checkpoint", checkpointed)
    monkeypatch.setattr(os, "fsync", synced)
    opened(path).close()
    assert order == ["database", "mark", "directory"]


def test_a_restart_keeps_the_bus(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        instance = world.store.bus.meta().instance
        world.restart()
        assert world.store.bus.meta().instance == instance
