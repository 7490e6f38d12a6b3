"""Somebody dies while the links of a process that died before are replaced."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

import psutil
import pytest

from agentbus.runtime.faults import Point
from tests.support.audit import audited
from tests.support.daemon import Daemon, owner, wait
from tests.support.faults import Points

pytestmark = pytest.mark.timeout(120)

STEP = 2
SURVIVORS = {
    "writer": ("gateway", "projector"),
    "gateway": ("writer", "projector", "indexer"),
    "projector": ("gateway", "writer"),
}
"""Who is handed a new end when a process has died."""


def successor(bus: Daemon, name: str, killed: int) -> int:
    """Its pid, while the daemon cannot be asked."""
    supervisor = psutil.Process(owner(bus.paths.lock))
    found: list[int] = []

    def is_there() -> bool:
        with suppress(psutil.Error):  # one that ends while it is looked at
            found.extend(
                child.pid
                for child in supervisor.children()
                if child.pid != killed and f"agentbus: {name}" in " ".join(child.cmdline())
            )
        return bool(found)

    assert wait(is_there), f"no other {name}"
    return found[0]


@pytest.mark.parametrize("point", [Point.HANDING, Point.HANDED])
def test_a_supervisor_killed_while_it_hands_over_links_costs_nothing(
    points: Points, bus: Daemon, point: Point, record_property
) -> None:
    with audited(bus, senders=2) as traffic:
        for times, victim in enumerate(SURVIVORS, start=1):
            traffic.go_on(STEP)
            points.arm(point, times=min(times, 2))
            bus.kill(victim)
            fired = points.fired(point)
            traffic.go_on(STEP)
            record_property(victim, round(time.monotonic() - fired.at, 2))
            bus.wait_replaced("supervisor", fired.pid)


@pytest.mark.parametrize("point", [Point.TAKING, Point.TAKEN])
@pytest.mark.parametrize("victim", SURVIVORS)
def test_a_survivor_killed_while_it_takes_a_new_link_costs_nothing(
    points: Points, bus: Daemon, point: Point, victim: str, record_property
) -> None:
    supervisor = bus.pid("supervisor")
    with audited(bus, senders=2) as traffic:
        for survivor in SURVIVORS[victim]:
            traffic.go_on(STEP)
            points.arm(point, process=survivor)
            killed = bus.kill(victim)
            fired = points.fired(point)
            traffic.go_on(STEP)
            record_property(survivor, round(time.monotonic() - fired.at, 2))
            bus.wait_replaced(survivor, fired.pid)
            bus.wait_replaced(victim, killed)
        assert bus.pid("supervisor") == supervisor


def test_a_process_killed_again_while_its_links_are_handed_over_costs_nothing(
    points: Points, bus: Daemon
) -> None:
    """Its successor dies before the survivor has taken the end that leads to it."""
    with audited(bus, senders=2) as traffic:
        for victim, survivors in SURVIVORS.items():
            traffic.go_on(STEP)
            points.arm(Point.TAKING, process=survivors[0], action="stop")
            killed = bus.kill(victim)
            stopped = points.fired(Point.TAKING)
            os.kill(successor(bus, victim, killed), signal.SIGKILL)
            os.kill(stopped.pid, signal.SIGCONT)
            traffic.go_on(STEP)
