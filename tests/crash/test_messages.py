"""A process dies between two steps of a message's way: the message is there once, and arrives.

How long it took until senders and reader were further than before is a property of each test.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence

import msgspec
import pytest

from agentbus.runtime.faults import Fired, Point
from tests.support import audit
from tests.support.audit import audited
from tests.support.daemon import Daemon, owner
from tests.support.faults import Points
from tests.support.peers import Attached
from tests.support.traffic import Traffic

pytestmark = pytest.mark.timeout(120)

WINDOWS = {
    "writer": (Point.UNCOMMITTED, Point.COMMITTED, Point.REPORT_QUEUED),
    "projector": (Point.COMMIT_HEARD, Point.BATCH_TORN, Point.PROJECTED),
    "gateway": (Point.VISIBLE, Point.PUSHED, Point.REPORT_HEARD),
    "indexer": (Point.INDEXING, Point.INDEXED),
}
ACCEPTING = (*WINDOWS["writer"][:2], *WINDOWS["projector"], Point.VISIBLE)

CAUGHT = 20
STEP = 2
"""Messages that each sender has accepted before and after."""

SECOND = 2
"""The time at which a process dies: what it did before, it has done once."""


def pids(bus: Daemon) -> dict[str, int]:
    return {item["name"]: item["pid"] for item in bus.status()["processes"]}


def adapters(traffic: Traffic) -> list[int]:
    return [member.adapters for member in (traffic.reader, *traffic.senders)]


class Windows:
    """One fault after the other under traffic, and everything audited at the end."""

    def __init__(self, points: Points, bus: Daemon, record: Callable[[str, object], None]) -> None:
        self._points = points
        self._record = record
        self.bus = bus

    def go_through(
        self, windows: Sequence[Point], kill: Callable[[Fired], None] | None = None
    ) -> dict[str, int]:
        """At each point the process there dies, or stands still while something is killed; the
        processes there are at the end."""
        action = "stop" if kill else "kill"
        with audited(self.bus, senders=2) as traffic:
            for point in windows:
                traffic.go_on(STEP)
                self._points.arm(point, action=action, times=SECOND)
                fired = self._points.fired(point)
                if kill:
                    kill(fired)
                traffic.go_on(STEP)
                self._record(point.value, round(time.monotonic() - fired.at, 2))
                self.bus.wait_replaced(fired.process, fired.pid)
            assert adapters(traffic) == [1, 1, 1]
            return pids(self.bus)


@pytest.fixture
def windows(points: Points, bus: Daemon, record_property) -> Windows:
    return Windows(points, bus, record_property)


@pytest.mark.parametrize("process", WINDOWS)
def test_a_process_killed_between_two_steps_costs_nothing(windows: Windows, process: str) -> None:
    before = pids(windows.bus)
    after = windows.go_through(WINDOWS[process])
    assert {name for name, pid in after.items() if pid != before[name]} == {process}


def test_the_whole_daemon_killed_between_two_steps_costs_nothing(windows: Windows) -> None:
    def kill_all(_: Fired) -> None:
        os.kill(owner(windows.bus.paths.lock), signal.SIGKILL)

    windows.go_through(ACCEPTING, kill_all)


def test_redis_killed_along_with_the_projector_costs_nothing(windows: Windows) -> None:
    def kill_both(fired: Fired) -> None:
        for pid in (owner(windows.bus.paths.redis_lock), fired.pid):
            os.kill(pid, signal.SIGKILL)

    before = pids(windows.bus)
    after = windows.go_through(WINDOWS["projector"], kill_both)
    assert {name for name, pid in after.items() if pid != before[name]} == {"projector", "redis"}


def test_row_18_redis_killed_in_the_middle_of_a_batch_costs_nothing(
    points: Points, bus: Daemon
) -> None:
    """The projector stands still meanwhile, and then goes on with what it was about to say."""
    before = pids(bus)
    with audited(bus, senders=2) as traffic:
        for point in WINDOWS["projector"]:
            traffic.go_on(STEP)
            points.arm(point, action="stop", times=SECOND)
            fired = points.fired(point)
            redis = owner(bus.paths.redis_lock)
            os.kill(redis, signal.SIGKILL)
            os.kill(fired.pid, signal.SIGCONT)
            traffic.go_on(STEP)
            bus.wait_replaced("redis", redis)
        after = pids(bus)
    replaced = {name for name, pid in after.items() if pid != before[name]}
    assert {"redis"} <= replaced <= {"redis", "projector"}  # which a slow machine takes for stopped


@pytest.mark.parametrize(("point", "again"), [(Point.UNCOMMITTED, False), (Point.COMMITTED, True)])
def test_sends_caught_by_a_crash_are_answered_as_if_there_had_been_none(
    points: Points, bus: Daemon, point: Point, again: bool
) -> None:
    """Of one that nobody reads, so that the commit at which the writer dies is of sends; all at
    once, as what comes when the writer is known to be gone is refused."""
    with bus.peer() as peer:
        sender = peer.attach("sender")
        for subscription in sender.registered["subscriptions"]:
            sender.call("unsubscribe", channel=subscription["channel"])
        points.arm(point)
        ids = [f"m{number}" for number in range(CAUGHT)]
        peer.write(b"".join(line(sender, message_id) for message_id in ids))
        results = [peer.result(message_id) for message_id in ids]
    assert points.has_fired(point)
    assert [result["message_id"] for result in results] == ids
    assert [result["seq"] for result in results] == list(range(1, CAUGHT + 1))
    assert results[0]["duplicate"] is again
    audit.copies(bus)
    assert bus.status()["totals"]["messages"] == CAUGHT


def line(sender: Attached, message_id: str) -> bytes:
    """A request that is called after its message."""
    params = {"attachment": sender.id, "channel": "general", "content": "caught"}
    params["message_id"] = message_id
    request = {"jsonrpc": "2.0", "id": message_id, "method": "send", "params": params}
    return msgspec.json.encode(request) + b"\n"
