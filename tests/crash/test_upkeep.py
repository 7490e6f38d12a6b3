"""A process dies while the bus cleans up, fills a Redis, or has it save."""

from __future__ import annotations

import glob
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agentbus.runtime.faults import Point
from tests.support import audit, redis
from tests.support.clock import ClockFile
from tests.support.daemon import Daemon, owner, wait
from tests.support.faults import Points
from tests.support.peers import Attached, Peer, RefusedError

MANY = 1400
"""More than two chunks of a cleanup, and more than five steps of a rebuild."""

FEW = 300

FULL = {
    "redis_budget_mib": 512,
    "sqlite_budget_mib": 64,
    "max_message_kib": 1024,
    "cleanup_free_percent": 50,
    "cleanup_interval_seconds": 3600,
    "send_messages_per_second": 10000,
    "send_kib_per_second": 65536,
}
"""Of 64 MiB half is freed, in some dozens of chunks."""

LARGE = 500_000

RETENTION_HOURS = 24
INTERVAL = 60.0
PAUSE = "300000"
"""Microseconds that Redis waits after each key that it saves."""


@pytest.fixture
def cold_bus() -> Iterator[Daemon]:
    settings = {"message_retention_hours": RETENTION_HOURS, "send_messages_per_second": 10000}
    with Daemon(**settings, send_kib_per_second=65536) as daemon:
        yield daemon


@pytest.fixture
def clock(cold_bus: Daemon) -> ClockFile:
    return ClockFile(cold_bus.directory)


@pytest.fixture
def points(cold_bus: Daemon, clock: ClockFile) -> Points:
    """With clocks that can be set."""
    points = Points(os.path.join(cold_bus.directory, "points"))
    cold_bus.environment.update(points.environment(clock_file=clock.path))
    return points


@pytest.fixture
def sender(points: Points, bus: Daemon) -> Iterator[Attached]:
    with bus.peer() as peer:
        yield peer.attach("sender")


def send_many(sender: Attached, name: str, count: int = MANY) -> None:
    params = {"attachment": sender.id, "channel": "general"}
    texts = [f"{name}-{number}" for number in range(count)]
    requests = [
        sender.peer.request("send", **params, message_id=text, content=text) for text in texts
    ]
    seqs = [sender.peer.result(request)["seq"] for request in requests]
    assert seqs == list(range(seqs[0], seqs[0] + count))


def insist(bus: Daemon, message_id: str) -> float:
    """Sends until it is accepted, as adapters do; the time by the monotonic clock."""

    def accepted() -> bool:
        try:
            with bus.peer() as peer:
                peer.attach(f"by-{os.urandom(4).hex()}").send("general", message_id, message_id)
        except (OSError, EOFError):
            return False
        except RefusedError as refused:
            if not refused.data.get("retryable"):
                raise
            return False
        return True

    assert wait(accepted), "nothing is accepted any more"
    return time.monotonic()


def stored(bus: Daemon) -> int:
    count: int = bus.status()["totals"]["messages"]
    return count


# ---- cleanup


@pytest.mark.parametrize(
    ("point", "process"), [(Point.CHUNK_DELETED, "writer"), (Point.BATCH_TORN, "projector")]
)
def test_a_cleanup_interrupted_between_chunks_goes_on_and_the_gap_is_exact(
    points: Points,
    clock: ClockFile,
    sender: Attached,
    bus: Daemon,
    point: Point,
    process: str,
    record_property,
) -> None:
    with bus.peer() as peer:
        late = peer.attach("late")
        (start,) = [
            each["position"]
            for each in late.registered["subscriptions"]
            if each["channel"] == "general"
        ]
    send_many(sender, "old")
    points.arm(point, process=process)
    shift = (RETENTION_HOURS + 1) * 3600.0
    clock.shift(wall=shift, monotonic=shift)
    fired = points.fired(point)
    record_property("seconds", round(insist(bus, "young") - fired.at, 2))
    if process != "writer":  # whose successor waits for the next interval
        bus.wait_until(lambda status: status["totals"]["messages"] == 1)
    audit.copies(bus)
    clock.shift(wall=shift + INTERVAL, monotonic=shift + INTERVAL)
    insist(bus, "younger")
    bus.wait_until(lambda status: status["totals"]["messages"] == 2)
    audit.copies(bus)
    with bus.peer() as peer:
        late = peer.attach("late")
        notes = deliveries(peer)
    assert [message["message_id"] for note in notes for message in note["messages"]] == [
        "young",
        "younger",
    ]
    (gap,) = [gap for note in notes for gap in note.get("gaps", [])]
    assert (gap["after_seq"], gap["lost"]) == (start, MANY)
    assert gap["resumed_at_seq"] == MANY + 1


def test_what_makes_room_goes_on_after_the_writers_death_without_waiting_for_the_next_cleanup(
    record_property,
) -> None:
    """Nothing is sent any more that would need room."""
    with Daemon(**FULL) as bus:
        points = Points(os.path.join(bus.directory, "points"))
        bus.environment.update(points.environment())
        bus.start()
        points.arm(Point.CHUNK_DELETED, times=2)
        with bus.peer() as peer:
            fill_until(points, peer.attach("sender"))
        fired = points.fired(Point.CHUNK_DELETED)
        target = 100 - FULL["cleanup_free_percent"]
        bus.wait_until(lambda status: (status["budgets"]["sqlite"]["percent"] or 100) <= target)
        record_property("seconds", round(time.monotonic() - fired.at, 2))
        insist(bus, "last")
        bus.wait_until(audit.rests)


def fill_until(points: Points, sender: Attached) -> None:
    """Sends until a cleanup has been cut off."""
    number = 0
    while not points.has_fired(Point.CHUNK_DELETED):
        number += 1
        with suppress(RefusedError):
            sender.send("general", f"m{number}", "x" * LARGE)


def deliveries(peer: Peer) -> list[dict[str, Any]]:
    """Up to the last message that was sent."""
    notes: list[dict[str, Any]] = []
    while not notes or notes[-1]["through"] < MANY + 2:
        notes.append(peer.note(lambda note: note["method"] == "deliver")["params"])
    return notes


# ---- filling a Redis


@pytest.mark.parametrize("company", ["alone", "with Redis"])
def test_a_rebuild_interrupted_begins_anew(
    points: Points, sender: Attached, bus: Daemon, company: str, record_property
) -> None:
    send_many(sender, "m")
    points.arm(Point.REBUILDING, action="stop", times=4)
    bus.kill("redis")
    fired = points.fired(Point.REBUILDING)
    if company == "with Redis":
        os.kill(owner(bus.paths.redis_lock), signal.SIGKILL)
    os.kill(fired.pid, signal.SIGKILL)
    record_property("seconds", round(insist(bus, "last") - fired.at, 2))
    audit.copies(bus)
    assert stored(bus) == MANY + 1


@pytest.mark.parametrize("company", ["alone", "with Redis"])
def test_a_catch_up_interrupted_goes_on_where_redis_is(
    points: Points, sender: Attached, bus: Daemon, company: str, record_property
) -> None:
    send_many(sender, "saved", 10)
    bus.stop()
    bus.start()
    with bus.peer() as peer:
        send_many(peer.attach("sender"), "unsaved")
    points.arm(Point.CATCHING_UP, action="stop", times=4)
    bus.kill("redis")
    fired = points.fired(Point.CATCHING_UP)
    if company == "with Redis":
        os.kill(owner(bus.paths.redis_lock), signal.SIGKILL)
    os.kill(fired.pid, signal.SIGKILL)
    record_property("seconds", round(insist(bus, "last") - fired.at, 2))
    audit.copies(bus)
    assert stored(bus) == MANY + 11
    assert rebuilds(bus) == 1  # the first Redis was empty


def rebuilds(bus: Daemon) -> int:
    return Path(bus.paths.log("projector")).read_text().count("rebuild ")


# ---- snapshots


def slow_saves(bus: Daemon) -> None:
    with redis.of_bus(bus.paths) as sock:
        (reply,) = redis.ask(sock, (b"CONFIG", b"SET", b"rdb-key-save-delay", PAUSE.encode()))
    assert reply == b"OK"


def saving(bus: Daemon) -> list[str]:
    return glob.glob(os.path.join(bus.paths.snapshot_directory, "temp-*.rdb"))


def looked_after(bus: Daemon) -> None:
    """Waits until the projector has looked at a Redis to which nobody writes any more: the time
    until a snapshot is due counts from there."""
    bus.wait_until(audit.rests)
    before = recalls(bus)
    assert wait(lambda: recalls(bus) > before)


def recalls(bus: Daemon) -> int:
    with redis.of_bus(bus.paths) as sock:
        (reply,) = redis.ask(sock, (b"INFO", b"commandstats"))
    found = re.search(rb"cmdstat_hmget:calls=(\d+)", reply)
    assert found
    return int(found[1])


@pytest.mark.parametrize("victim", ["projector", "redis", "both"])
def test_a_snapshot_interrupted_is_of_no_use_and_does_no_harm(
    points: Points,
    clock: ClockFile,
    sender: Attached,
    bus: Daemon,
    victim: str,
    record_property: Any,
) -> None:
    send_many(sender, "m", FEW)
    slow_saves(bus)
    looked_after(bus)
    points.arm(Point.SNAPSHOT_BEGUN, action="stop")
    clock.shift(monotonic=400.0)
    fired = points.fired(Point.SNAPSHOT_BEGUN)
    server = owner(bus.paths.redis_lock)
    pids = {"projector": [fired.pid], "redis": [server], "both": [server, fired.pid]}
    for pid in pids[victim]:
        os.kill(pid, signal.SIGKILL)
    if victim == "redis":
        os.kill(fired.pid, signal.SIGCONT)
    record_property("seconds", round(insist(bus, "last") - fired.at, 2))
    audit.copies(bus)
    assert stored(bus) == FEW + 1


def test_a_stop_ends_though_the_projector_dies_before_the_snapshot(
    points: Points, sender: Attached, bus: Daemon
) -> None:
    send_many(sender, "m", FEW)
    points.arm(Point.SNAPSHOT_ASKED)
    bus.stop()
    assert points.has_fired(Point.SNAPSHOT_ASKED)
    starts_whole(bus)


def test_a_stop_ends_though_redis_dies_in_the_middle_of_the_snapshot(
    sender: Attached, bus: Daemon
) -> None:
    send_many(sender, "m", FEW)
    slow_saves(bus)
    server = owner(bus.paths.redis_lock)
    sender.peer.call("stop")
    assert wait(lambda: bool(saving(bus)))
    os.kill(server, signal.SIGKILL)
    bus.stop()
    starts_whole(bus)


def starts_whole(bus: Daemon) -> None:
    bus.start()
    audit.copies(bus)
    assert stored(bus) == FEW
    assert saving(bus) == []
