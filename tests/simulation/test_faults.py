"""Every fault that chance may draw, by itself: it is real, and the bus comes to rest after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from agentbus import sqlite
from agentbus.errors import StorageFailed
from tests.support.simulation.disk import Disk
from tests.support.simulation.faults import TABLE
from tests.support.simulation.scheduler import Scheduler
from tests.support.simulation.world import World

TIMES = 3
APART = 0.7
"""Virtual seconds."""


@pytest.mark.parametrize("name", TABLE)
def test_a_bus_comes_to_rest_after_a_fault(name: str) -> None:
    with World(seed=1, agents=2) as world:
        world.start()
        for _ in range(TIMES):
            world.run(APART)
            world.faults.inject(name)
        world.run(APART)
        world.settle()
        world.stop()
        assert world.faults.drawn == {name: TIMES}


@pytest.fixture
def disk() -> Iterator[Disk]:
    with closing(Disk()) as disk:
        yield disk


def writing(disk: Disk) -> sqlite.Connection:
    connection = sqlite.open_writer(disk.database, synchronous="full", application_id=1)
    connection.execute("CREATE TABLE t (x)")
    return connection


def insert(connection: sqlite.Connection) -> None:
    with connection.transaction():
        connection.execute("INSERT INTO t VALUES (randomblob(3000))")


def insert_many(connection: sqlite.Connection) -> Iterator[None]:
    while True:
        insert(connection)
        yield


def count(connection: sqlite.Connection) -> int:
    (found,) = connection.execute("SELECT count(*) FROM t").fetchone()
    return int(found)


@pytest.mark.parametrize("after", [0, 1, 3000, 20_000])
def test_a_disk_that_breaks_fails_in_a_transaction_and_keeps_what_was_before(
    disk: Disk, after: int
) -> None:
    with closing(writing(disk)) as connection:
        disk.break_writes(after)
        inserts: list[None] = []
        with pytest.raises(StorageFailed, match="disk I/O error"), disk.used():
            inserts.extend(insert_many(connection))
        inserted = len(inserts)
        assert count(connection) == inserted
        insert(connection)  # the trouble is the bus', not the test's
        disk.mend()
        with disk.used():
            insert(connection)
        assert count(connection) == inserted + 2


def test_without_descriptors_no_file_is_opened_but_by_the_test(disk: Disk) -> None:
    with closing(writing(disk)):
        disk.break_opens()
        with disk.used():
            with pytest.raises(StorageFailed, match="unable to open"):
                sqlite.open_reader(disk.database)
            with disk.looked_at():
                sqlite.open_reader(disk.database).close()


def test_what_is_left_of_a_reset_that_was_interrupted_is_known(disk: Disk) -> None:
    writing(disk).close()
    assert not disk.wipe(files=1)
    assert disk.half_wiped
    assert disk.wipe()
    assert not disk.half_wiped
    assert not disk.exists


def test_a_machine_that_stood_still_finds_everything_late_and_in_order() -> None:
    scheduler = Scheduler(seed=1)
    found: list[tuple[str, float]] = []

    def note(what: str) -> Callable[[], None]:
        return lambda: found.append((what, scheduler.now - begun))

    begun = scheduler.now
    scheduler.after(2.0, note("second"))
    scheduler.after(1.0, note("first"))
    scheduler.after(200.0, note("third"))
    scheduler.leap(100.0)
    scheduler.run_until(lambda: False, 150.0)
    assert found == [("first", 100.0), ("second", 100.0), ("third", 200.0)]
