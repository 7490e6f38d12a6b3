"""A disk that is full: while the bus runs, when a part of it dies meanwhile, and at the start."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import audit
from tests.support.daemon import Daemon, wait
from tests.support.peers import RefusedError
from tests.support.stdio import Adapter, ToolError
from tests.support.storage import Disk, refused

DISK = 16
LARGE = 500_000
"""Bytes of a message that does not fit what the WAL has room for already."""

SMALL = {
    "redis_budget_mib": 64,
    "sqlite_budget_mib": 64,
    "send_kib_per_second": 65536,
    "max_message_kib": 1024,
}


@pytest.fixture
def full(place: Callable[..., Daemon], disk: Callable[[int], Disk]) -> tuple[Daemon, Disk]:
    """A place whose data directory is on a disk that can be filled."""
    small = disk(DISK)
    return place(data_directory=small.data, **SMALL), small


def send(adapter: Adapter, content: str, size: int = 0) -> str:
    """What the sender is told: the id of the message, or the code of the error."""
    try:
        sent = adapter.call("send", channel="general", content=content + "x" * size)
    except ToolError as error:
        if not error.retryable or "free some space" not in str(error):
            raise
        return error.code
    message_id: str = sent["message_id"]
    return message_id


def test_what_does_not_fit_is_refused_whole_and_the_bus_goes_on_by_itself(
    full: tuple[Daemon, Disk],
) -> None:
    bus, disk = full
    with Adapter(bus.environment) as sender, Adapter(bus.environment) as reader:
        reader.call("whoami")
        accepted = [send(sender, f"before {n}") for n in range(3)]
        disk.fill()
        told = [send(sender, f"during {n} ", LARGE) for n in range(8)]
        assert set(told) == {"storage_error"}
        status = bus.status()
        assert status["state"] == "ready"
        assert "full" in " ".join(status["reasons"])
        began = time.monotonic()
        disk.free()
        accepted += [send(sender, f"after {n}") for n in range(3)]
        print(f"measured: {time.monotonic() - began:.3f} s")
        seen: list[str] = []
        while len(seen) < len(accepted):
            got = reader.call("recv", wait_seconds=10)["messages"]
            assert got, seen
            seen += [each["message_id"] for each in got]
        assert seen == accepted
    bus.stop()
    assert audit.stored(bus.paths.database) == accepted
    log = Path(bus.paths.log_directory, "writer.log").read_text()
    assert log.count("action=commit_failed") <= 1


def test_a_writer_that_dies_meanwhile_comes_back_when_there_is_room(
    full: tuple[Daemon, Disk],
) -> None:
    bus, disk = full
    bus.start()
    with bus.peer() as peer:
        sender = peer.attach("sender")
        sender.send("general", "first", "fits")
        disk.fill()
        writer = bus.kill("writer")
        bus.wait_until(lambda status: is_back(status, writer))
        with pytest.raises(RefusedError) as refusal:
            sender.send("general", "second", "x" * LARGE)
        assert refusal.value.code == "storage_error"
        disk.free()
        assert sender.send("general", "second", "x" * LARGE)["seq"] == 2
    bus.stop()
    assert audit.stored(bus.paths.database) == ["first", "second"]


def test_a_gateway_that_dies_meanwhile_is_replaced_when_there_is_room(
    full: tuple[Daemon, Disk],
) -> None:
    """A new gateway needs a number of its own, which is a commit that may or may not fit."""
    bus, disk = full
    bus.start()
    with Adapter(bus.environment) as adapter:
        send(adapter, "first")
        disk.fill()
        bus.kill("gateway")
        assert send(adapter, "second", LARGE) == "storage_error"
        disk.free()
        began = time.monotonic()
        assert wait(lambda: send_when_it_works(adapter))
        print(f"measured: {time.monotonic() - began:.3f} s")
        bus.wait_until(lambda status: status["state"] == "ready")
    bus.stop()
    assert len(audit.stored(bus.paths.database)) == 2


def send_when_it_works(adapter: Adapter) -> bool:
    """Whether it did; it may be known for a second that it did not."""
    return send(adapter, "again") != "storage_error"


def is_back(status: dict[str, Any], writer: int) -> bool:
    """Whether a writer's successor works, or has said why it does not."""
    pids = {each["name"]: each["pid"] for each in status["processes"]}
    hindered = "is full" in " ".join(status["reasons"])
    return pids.get("writer") not in (None, writer) and (status["state"] == "ready" or hindered)


@pytest.mark.parametrize("room", [0, 16, 64, 256])
def test_a_first_start_says_so_whatever_it_is_that_does_not_fit(
    full: tuple[Daemon, Disk], room: int
) -> None:
    bus, disk = full
    disk.fill(leave=room * 1024)
    reason = refused(bus, "storage_error")
    assert disk.data in reason
    assert "free some space" in reason
    disk.free()
    bus.start()
    with Adapter(bus.environment) as adapter:
        assert len(send(adapter, "after")) == 32


def test_a_later_start_says_so_and_the_next_call_works_when_there_is_room(
    full: tuple[Daemon, Disk],
) -> None:
    bus, disk = full
    with Adapter(bus.environment) as adapter:
        first = send(adapter, "first")
        bus.stop()
        disk.fill()
        began = time.monotonic()
        assert "bus.sqlite3" in refused(bus, "storage_error")
        assert send(adapter, "second") == "storage_error"
        print(f"told after: {time.monotonic() - began:.3f} s")
        before = {name: os.path.getsize(os.path.join(disk.data, name)) for name in names(disk)}
        disk.free()
        began = time.monotonic()
        assert wait(lambda: send_when_it_works(adapter))
        print(f"measured: {time.monotonic() - began:.3f} s")
        assert before["bus.sqlite3"] > 0
    bus.stop()
    stored = audit.stored(bus.paths.database)
    assert stored[0] == first
    assert len(stored) == 2


def names(disk: Disk) -> list[str]:
    """Of the files of a data directory."""
    return [each.name for each in os.scandir(disk.data) if each.is_file()]


def test_a_snapshot_without_room_costs_nothing_but_time(full: tuple[Daemon, Disk]) -> None:
    bus, disk = full
    bus.start()
    with bus.peer() as peer:
        sender = peer.attach("sender")
        for n in range(20):
            sender.send("general", f"m{n}", "x" * 50_000)
        disk.fill()
    bus.stop()
    disk.free()
    bus.start()
    with bus.peer() as peer:
        history = peer.attach("reader").call("history", channel="general", limit=100)
        assert [each["message_id"] for each in history["messages"]] == [f"m{n}" for n in range(20)]
