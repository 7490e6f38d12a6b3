"""A process dies between two steps of an edit or a deletion: it counts once, everywhere."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from agentbus.runtime.faults import Point
from tests.support import audit
from tests.support.daemon import Daemon
from tests.support.faults import Points
from tests.support.traffic import Member

pytestmark = pytest.mark.timeout(120)

WINDOWS = {
    "writer": (Point.UNCOMMITTED, Point.COMMITTED),
    "projector": (Point.COMMIT_HEARD, Point.BATCH_TORN, Point.PROJECTED),
}


@pytest.fixture
def member(points: Points, bus: Daemon) -> Iterator[Member]:
    member = Member(bus, "editor")
    yield member
    member.end()


def contents(member: Member) -> dict[str, tuple[str, int]]:
    listed = member.insist("memory_list", channel="memory")["memories"]
    return {each["memory_id"]: (each["content"], each["revision"]) for each in listed}


@pytest.mark.parametrize("process", WINDOWS)
@pytest.mark.parametrize("change", ["edit", "delete"])
def test_a_change_caught_by_a_crash_is_made_once(
    points: Points, bus: Daemon, member: Member, process: str, change: str, record_property
) -> None:
    expected: dict[str, tuple[str, int]] = {}
    for point in WINDOWS[process]:
        sent = member.insist("send", channel="memory", content=f"first {point.value}")
        memory = sent["memory_id"]
        bus.wait_until(audit.rests)
        points.arm(point)
        if change == "edit":
            done = member.insist("memory_edit", memory_id=memory, content=point.value)
            assert (done["replaced_revision"], done["revision"]) == (1, 2)
            expected[memory] = (point.value, 2)
        else:
            done = member.insist("memory_delete", memory_id=memory)
            assert done["deleted_revision"] == 1
        fired = points.fired(point)
        assert fired.process == process
        assert contents(member) == expected
        record_property(point.value, round(time.monotonic() - fired.at, 2))
        bus.wait_replaced(process, fired.pid)
    assert member.adapters == 1
    audit.copies(bus)
