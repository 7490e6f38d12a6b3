"""The machine's clock is set, or a laptop sleeps for days: nobody loses a place in a channel, and
nothing is deleted, for a time that nobody has lived through."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon, TestClock, wait
from tests.support.peers import Attached
from tests.support.stdio import Adapter

pytestmark = pytest.mark.timeout(300)

HOUR = 3600.0
DAY = 24 * HOUR
SETTINGS = {"cursor_idle_hours": 2, "message_retention_hours": 2, "cleanup_interval_seconds": 5}
LOOK = 6.0
"""Virtual seconds; the writer looks for cursors that ran out, and cleans up, every five."""


@pytest.fixture
def bus() -> Iterator[Daemon]:
    """One whose cursors and messages live for two hours, with a clock to set."""
    with Daemon(**SETTINGS) as daemon:
        yield daemon


def pass_time(clock: TestClock, seconds: float) -> None:
    """All clocks go on: it was lived through."""
    clock.jump(seconds, seconds)


def looks(bus: Daemon, clock: TestClock) -> None:
    """Lets the writer look at its clocks, and again later, and the projector follow."""
    for _ in range(3):
        bus.status()
        pass_time(clock, LOOK)
    bus.wait_until(lambda status: status["state"] == "ready")


def lag(bus: Daemon, session: str) -> list[tuple[str, int]]:
    """A session's living cursors in `general`."""
    return [
        (each["channel"], each["lag"])
        for row in bus.status()["sessions"]
        if row["session"] == session
        for each in row["subscriptions"]
        if each["channel"] == "general"
    ]


def sent(sender: Attached, number: int) -> str:
    """When a message was sent."""
    at: str = sender.send("general", f"m{number}", f"{number}")["sent_at"]
    return at


@pytest.mark.parametrize("seconds", [DAY, 3 * DAY, -DAY])
def test_a_clock_that_was_set_costs_no_cursor_and_no_message(bus: Daemon, seconds: float) -> None:
    clock = bus.clock()
    bus.start()
    reader = ("--application", "clock", "--session", "reader")
    with Adapter(bus.environment, *reader) as adapter, bus.peer() as peer:
        adapter.call("whoami")
        sender = peer.attach("sender")
        with bus.peer() as other:
            other.attach("away")
        before = sent(sender, 0)
        clock.jump(seconds, 0.0)
        looks(bus, clock)
        after = sent(sender, 1)
        assert after >= before
        assert lag(bus, "reader") == [("general", 2)]
        assert lag(bus, "away") == [("general", 2)]
        result = adapter.call("recv", wait_seconds=30)
        assert [each["content"] for each in result["messages"]] == ["0", "1"]
        assert (result["gaps"], result["expired"]) == ([], [])
        with bus.peer() as other:  # comes back within the hour
            back = other.attach("away")
            assert [each["content"] for each in back.receive(2)] == ["0", "1"]
    log = Path(bus.paths.log("writer")).read_text()
    assert log.count("action=clock_jumped") == 1


def test_time_that_was_lived_through_counts(bus: Daemon) -> None:
    """The same without a leap: what nobody has used for two hours runs out, and says so."""
    clock = bus.clock()
    bus.start()
    with Adapter(bus.environment, "--application", "clock", "--session", "reader") as adapter:
        adapter.call("whoami")
        pass_time(clock, 2.1 * HOUR)
        looks(bus, clock)
        result = adapter.call("recv", wait_seconds=30)
        assert {each["channel"] for each in result["expired"]} == {"general", "memory"}


def test_after_an_hour_in_which_nobody_came_a_leap_counts(bus: Daemon) -> None:
    clock = bus.clock()
    bus.start()
    with bus.peer() as peer:
        peer.attach("away")
    clock.jump(DAY, 0.0)
    looks(bus, clock)
    assert lag(bus, "away") == [("general", 0)]
    pass_time(clock, 1.1 * HOUR)
    looks(bus, clock)
    assert lag(bus, "away") == []


def test_a_clock_that_is_set_to_and_fro_stops_nothing(bus: Daemon) -> None:
    clock = bus.clock()
    bus.start()
    with Adapter(bus.environment) as reader, bus.peer() as peer:
        reader.call("whoami")
        sender = peer.attach("sender")
        times: list[str] = []
        seen: list[Any] = []
        for number in range(8):
            clock.jump(DAY if number % 2 else -DAY, 0.0)
            times.append(sent(sender, number))
            seen += reader.call("recv", wait_seconds=30)["messages"]
        assert [each["content"] for each in seen] == [f"{number}" for number in range(8)]
        assert times == sorted(times)
        found = wait(lambda: len(reader.call("search", query="3")["results"]) == 1)
        assert found
    assert bus.status()["state"] == "ready"
