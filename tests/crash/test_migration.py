"""A process dies while the database is made, or brought to the present schema."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from contextlib import closing

import pytest

from agentbus.runtime.faults import Point
from agentbus.store import schema
from tests.support import audit
from tests.support.daemon import Daemon, owner
from tests.support.faults import Points

pytestmark = pytest.mark.timeout(120)

POINTS = pytest.mark.parametrize("point", [Point.MIGRATING, Point.MIGRATED])
COUNT = 20

SCHEMA_1 = """
    ALTER TABLE meta DROP COLUMN live_bytes;
    ALTER TABLE meta DROP COLUMN cleaning;
    DELETE FROM _sqlite_migrations WHERE name > 'm0002';
    PRAGMA user_version = 1;
"""


def put_back(path: str) -> None:
    """The file as the first version left it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA_1)
        assert connection.total_changes == schema.SCHEMA - 1


def rows(path: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA user_version").fetchone() == (schema.SCHEMA,)
        found = "SELECT live_bytes = (SELECT sum(length(envelope)) FROM messages) FROM meta"
        assert connection.execute(found).fetchone() == (1,)
        return connection.execute("SELECT * FROM messages ORDER BY id").fetchall()


def fill(bus: Daemon) -> None:
    with bus.peer() as peer:
        sender = peer.attach("sender")
        for number in range(COUNT):
            sender.send("general", f"m{number}", f"m{number}")


@pytest.fixture
def old(points: Points, cold_bus: Daemon) -> list[tuple[object, ...]]:
    """The rows of a bus that has stopped, whose file is of the first version."""
    cold_bus.start()
    fill(cold_bus)
    cold_bus.stop()
    before = rows(cold_bus.paths.database)
    put_back(cold_bus.paths.database)
    return before


@POINTS
def test_a_writer_killed_while_it_migrates_is_replaced_by_one_that_does(
    points: Points, cold_bus: Daemon, old: list[tuple[object, ...]], point: Point, record_property
) -> None:
    points.arm(point)
    cold_bus.start()
    record_property("seconds", round(time.monotonic() - points.fired(point).at, 2))
    assert cold_bus.status()["totals"]["messages"] == COUNT
    audit.copies(cold_bus)
    cold_bus.stop()
    assert rows(cold_bus.paths.database) == old


@POINTS
def test_a_daemon_killed_while_it_migrates_is_as_it_was_or_as_it_will_be(
    points: Points, cold_bus: Daemon, old: list[tuple[object, ...]], point: Point, record_property
) -> None:
    points.arm(point, action="stop")
    starting = threading.Thread(target=start_in_vain, args=(cold_bus,))
    starting.start()
    points.fired(point)
    os.kill(owner(cold_bus.paths.lock), signal.SIGKILL)
    starting.join()
    before = time.monotonic()
    cold_bus.start()
    record_property("seconds", round(time.monotonic() - before, 2))
    audit.copies(cold_bus)
    cold_bus.stop()
    assert rows(cold_bus.paths.database) == old


def start_in_vain(bus: Daemon) -> None:
    with pytest.raises(AssertionError, match="died before it was ready"):
        bus.start()


@POINTS
def test_a_writer_killed_while_it_makes_the_database_leaves_a_bus_that_works(
    points: Points, cold_bus: Daemon, point: Point
) -> None:
    points.arm(point)
    cold_bus.start()
    assert points.has_fired(point)
    fill(cold_bus)
    audit.copies(cold_bus)
    cold_bus.stop()
    assert len(rows(cold_bus.paths.database)) == COUNT
