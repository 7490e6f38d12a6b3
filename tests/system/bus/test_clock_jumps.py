"""Clocks that jump: a machine that slept, a wall clock that was set. Nothing waits for the time
that was, and nobody is taken for silent."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.support.daemon import Daemon, TestClock
from tests.support.peers import Attached, RefusedError

HOUR = 3600.0
AT_ONCE = 5.0
"""Seconds that an answer may take; what waits for a timer that was set before takes up to 30."""

_tests = itertools.count()

SHIFTS = {
    "both clocks go on by hours": (2 * HOUR, 2 * HOUR),
    "only the monotonic clock goes on, as if the wall clock were set back": (0.0, 2 * HOUR),
    "the wall clock is set forward": (10 * HOUR, 0.0),
    "the wall clock is set back": (-10 * HOUR, 0.0),
}


@pytest.fixture(scope="module")
def clock() -> Iterator[tuple[Daemon, TestClock]]:
    """A running daemon, and its time."""
    with Daemon(send_messages_per_second=10_000, send_kib_per_second=65_536) as daemon:
        clock = daemon.clock()
        daemon.start()
        yield daemon, clock


@pytest.fixture
def key() -> str:
    """Tells what one test does from what the others did."""
    return f"test {next(_tests)}"


def every_request(author: Attached, reader: Attached, subscription: int, key: str) -> None:
    """All that waits for a timer somewhere, or for another process, by and by."""
    made = author.send("memory", f"{key}-made", "new")
    author.send("general", f"{key}-said", "lighthouse")
    hand_over(reader, subscription)
    memory = made["memory_id"]
    author.call("memory.edit", memory_id=memory, operation_id=f"{key}-edit", content="newer")
    author.call("memory.delete", memory_id=memory, operation_id=f"{key}-delete")
    found = reader.call("search", query="lighthouse", limit=100)["results"]
    assert f"{key}-said" in [each["message"]["message_id"] for each in found]
    reader.call("history", channel="general")
    reader.call("inbox")
    reader.call("renew")
    reader.peer.call("status")


def hand_over(reader: Attached, subscription: int) -> None:
    """Receives a message and reports it."""
    reader.report(subscription, delivered(reader, subscription)["through"])


def delivered(reader: Attached, subscription: int) -> dict[str, Any]:
    """What comes next in one subscription."""
    params: dict[str, Any] = reader.peer.note(
        lambda note: note["method"] == "deliver" and note["params"]["subscription"] == subscription
    )["params"]
    return params


def quiet(reader: Attached) -> None:
    """Returns when the gateway has told of the last change, and waits for seconds to pass only."""
    reader.peer.notes.clear()
    reader.peer.note(lambda each: each["method"] == "inbox")


@pytest.mark.parametrize("shift", SHIFTS.values(), ids=SHIFTS)
def test_every_request_is_answered_at_once_and_nobody_is_taken_for_silent(
    clock: tuple[Daemon, TestClock], shift: tuple[float, float], key: str
) -> None:
    daemon, jumping = clock
    before = {process["name"]: process["pid"] for process in daemon.status()["processes"]}
    with daemon.peer() as one, daemon.peer() as other:
        author = one.attach(f"author {key}")
        reader = other.attach(f"reader {key}")
        subscription = reader.call("subscribe", channel="general")["subscription"]
        for number in range(3):
            every_request(author, reader, subscription, f"{key} {number}")
            author.send("general", f"{key} {number} before", "x")
            note = delivered(reader, subscription)
            quiet(reader)
            jumping.jump(*shift)
            began = time.monotonic()
            reader.report(subscription, note["through"])
            assert time.monotonic() - began < AT_ONCE
        every_request(author, reader, subscription, f"{key} at last")
        alive = other.call("heartbeat")["attachments"]
        assert alive == [reader.id]
    after = {process["name"]: process["pid"] for process in daemon.status()["processes"]}
    assert after == before


@pytest.mark.parametrize("shift", SHIFTS.values(), ids=SHIFTS)
def test_what_was_asked_before_is_answered(
    clock: tuple[Daemon, TestClock], shift: tuple[float, float], key: str
) -> None:
    daemon, jumping = clock
    with daemon.peer() as one, daemon.peer() as other:
        author = one.attach(f"author {key}")
        reader = other.attach(f"reader {key}")
        subscription = reader.call("subscribe", channel="general")["subscription"]
        for number in range(4):
            author.send("general", f"{key} {number}", "x")
            note = delivered(reader, subscription)
            positions = [(subscription, note["through"])]
            report = other.request(
                "delivered", attachment=reader.id, epoch=note["epoch"], positions=positions
            )
            asked = [report, other.request("inbox", attachment=reader.id), other.request("status")]
            search = other.request("search", attachment=reader.id, query="x")
            began = time.monotonic()
            jumping.jump(*shift)
            for each in asked:
                other.result(each)
            with suppress(RefusedError):  # its time may be over, but nobody waits for it
                other.result(search)
            assert time.monotonic() - began < AT_ONCE
