"""The last steps of a message, from the buffer of an adapter to the cursor: what the harness has
read and the bus has committed does not come back, and nothing else is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from agentbus.runtime.faults import Point
from tests.support.daemon import Daemon
from tests.support.faults import Points
from tests.support.peers import Attached
from tests.support.traffic import Reader

COUNT = 3
OURS = [f"m{number}" for number in range(COUNT)]
NEXT = "one more"


@pytest.fixture
def inside(cold_bus: Daemon) -> Points:
    """Points of the reader's adapter."""
    return Points(os.path.join(cold_bus.directory, "inside"))


@pytest.fixture
def reader(points: Points, inside: Points, bus: Daemon) -> Iterator[Reader]:
    """Subscribed, with an adapter that has received before: a session's first recv also renews."""
    reader = Reader(bus, {**bus.environment, **inside.environment()})
    assert recv(reader, wait=0) == []
    yield reader
    reader.end()


@pytest.fixture
def sender(reader: Reader, bus: Daemon) -> Iterator[Attached]:
    with bus.peer() as peer:
        yield peer.attach("sender")


def send(sender: Attached) -> None:
    for content in OURS:
        sender.send("general", content, content)


def recv(reader: Reader, wait: float = 10) -> list[str]:
    """The contents that the next recv shows; another adapter where this one has died."""
    result = reader.insist("recv", wait_seconds=wait)
    assert not result["gaps"]
    return [message["content"] for message in result["messages"]]


def goes_on(reader: Reader, bus: Daemon) -> None:
    """The next message comes, and nothing before it."""
    with bus.peer() as peer:
        peer.attach("another").send("general", NEXT, NEXT)
    assert recv(reader) == [NEXT]


def all_of(reader: Reader) -> list[str]:
    """As many as were sent, in as many answers as that takes."""
    shown: list[str] = []
    while len(shown) < COUNT:
        shown += recv(reader)
    return shown


def committed(bus: Daemon) -> None:
    """Waits until the reader's cursor is behind all that was sent, which no later report did."""
    expected = ("reader", "general", COUNT)

    def is_there(status: dict[str, Any]) -> bool:
        return expected in [
            (session["session"], cursor["channel"], cursor["position"])
            for session in status["sessions"]
            for cursor in session["subscriptions"]
        ]

    bus.wait_until(is_there)


def test_what_a_killed_adapter_had_in_its_buffer_comes_again(
    inside: Points, reader: Reader, sender: Attached, bus: Daemon
) -> None:
    inside.arm(Point.BUFFERED)
    send(sender)
    inside.fired(Point.BUFFERED)
    assert all_of(reader) == OURS
    assert reader.adapters == 2
    goes_on(reader, bus)


def test_an_answer_of_which_no_byte_was_written_was_no_delivery(
    inside: Points, reader: Reader, sender: Attached, bus: Daemon
) -> None:
    send(sender)
    inside.arm(Point.ANSWERING)
    assert all_of(reader) == OURS
    assert inside.has_fired(Point.ANSWERING)
    assert reader.adapters == 2
    goes_on(reader, bus)


def test_what_was_shown_and_not_reported_is_shown_again(
    inside: Points, reader: Reader, sender: Attached, bus: Daemon
) -> None:
    send(sender)
    inside.arm(Point.HANDED_OFF)
    shown = recv(reader)
    inside.fired(Point.HANDED_OFF)
    assert shown
    assert shown == OURS[: len(shown)]
    assert all_of(reader) == OURS
    assert reader.adapters == 2
    goes_on(reader, bus)


def test_what_was_reported_with_the_last_breath_does_not_come_back(
    inside: Points, reader: Reader, sender: Attached, bus: Daemon
) -> None:
    send(sender)
    inside.arm(Point.REPORTED)
    assert all_of(reader) == OURS
    inside.fired(Point.REPORTED)
    goes_on(reader, bus)
    assert reader.adapters == 2


@pytest.mark.parametrize(
    ("point", "process"),
    [
        (Point.REPORT_HEARD, "gateway"),
        (Point.REPORT_QUEUED, "writer"),
        (Point.UNCOMMITTED, "writer"),
        (Point.COMMITTED, "writer"),
    ],
)
def test_a_report_caught_by_a_crash_is_made_again(
    points: Points, reader: Reader, sender: Attached, bus: Daemon, point: Point, process: str
) -> None:
    send(sender)
    points.arm(point)
    assert all_of(reader) == OURS
    fired = points.fired(point)
    assert fired.process == process
    bus.wait_replaced(process, fired.pid)
    committed(bus)
    goes_on(reader, bus)
    assert reader.adapters == 1
    reader.end()
    assert recv(reader, wait=0) == []
