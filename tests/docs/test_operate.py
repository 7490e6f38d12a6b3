"""What the page on operating says of backups and moves is true."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.stdio import Adapter

PAGE = (Path(__file__).resolve().parents[2] / "docs/how-to/operate.md").read_text()
FILES = ("", "-wal", "-shm")


@pytest.fixture
def bus() -> Iterator[Daemon]:
    """One that runs, with a message in it."""
    with Daemon() as daemon:
        daemon.start()
        say(daemon, "first")
        yield daemon


def say(bus: Daemon, content: str) -> None:
    with Adapter(bus.environment) as adapter:
        adapter.call("send", channel="general", content=content)


def said(bus: Daemon) -> list[str]:
    with Adapter(bus.environment) as adapter:
        messages = adapter.call("history", channel="general")["messages"]
        found = adapter.call("search", query="first")["results"]
    assert len(found) == 1
    return [each["content"] for each in messages]


def restore(bus: Daemon, copy: str) -> None:
    for ending in FILES:
        with suppress(FileNotFoundError):
            os.rename(bus.paths.database + ending, bus.directory + "/away" + ending)
        if os.path.exists(copy + ending):
            shutil.copy(copy + ending, bus.paths.database + ending)


def test_a_copy_of_the_stopped_bus_is_a_backup(bus):
    bus.stop()
    copy = bus.directory + "/copy"
    shutil.copytree(bus.paths.data_directory, copy)
    bus.start()
    say(bus, "second")
    bus.stop()
    restore(bus, copy + "/bus.sqlite3")
    assert said(bus) == ["first"]


def test_the_copy_that_sqlite_makes_of_a_bus_that_runs_is_a_backup(bus):
    [statement] = re.findall(r"\"(VACUUM INTO '\$HOME/bus-backup.sqlite3')\"", PAGE)
    database = sqlite3.connect(f"file:{bus.paths.database}?mode=ro", uri=True)
    database.execute(statement.replace("$HOME", bus.directory))
    database.close()
    say(bus, "second")
    bus.stop()
    restore(bus, bus.directory + "/bus-backup.sqlite3")
    assert said(bus) == ["first"]
    say(bus, "third")
    assert said(bus) == ["first", "third"]


def test_what_may_be_deleted_is_made_anew(bus):
    bus.stop()
    shutil.rmtree(bus.paths.runtime_directory)
    shutil.rmtree(bus.paths.snapshot_directory)
    shutil.rmtree(bus.paths.log_directory)
    for ending in FILES:
        with suppress(FileNotFoundError):
            os.unlink(bus.paths.index + ending)
    assert said(bus) == ["first"]


def test_data_can_be_moved(bus):
    bus.stop()
    moved = bus.directory + "/moved"
    shutil.move(bus.paths.data_directory, moved)
    text = Path(bus.config_path).read_text()
    Path(bus.config_path).write_text(text.replace(bus.paths.data_directory, moved))
    assert said(bus) == ["first"]
    assert not os.path.exists(bus.paths.data_directory)
