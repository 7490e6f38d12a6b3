"""What a daemon says of itself."""

from __future__ import annotations

import pytest

from agentbus.cli.doctor.checks import daemon
from agentbus.cli.doctor.facts import Bus
from agentbus.cli.doctor.findings import Result
from agentbus.cli.snapshot import Snapshot


@pytest.mark.parametrize(
    ("state", "reasons", "result"),
    [
        ("ready", [], Result.OK),
        ("ready", ["search is behind"], Result.WARNING),
        ("recovering", ["redis is away"], Result.PROBLEM),
        ("recovering", [], Result.PROBLEM),
        ("starting", ["it reads"], Result.WARNING),
        ("stopping", [], Result.WARNING),
    ],
)
def test_each_state_is_told_with_its_reasons(facts, state, reasons, result):
    bus = Bus("/s", pid=1, snapshot=Snapshot(version="1", state=state, reasons=reasons))
    [found] = daemon.state(facts(bus=bus))
    assert found.result is result
    assert all(reason in found.found for reason in reasons)


def test_a_leap_of_minutes_is_told_and_a_drift_is_not(facts):
    snapshot = Snapshot(version="1", state="ready", uptime_s=1000.0)
    for age, told in ((1000.0, False), (1299.0, False), (1400.0, True), (600.0, True)):
        bus = Bus("/s", pid=1, snapshot=snapshot, age=age)
        assert bool(list(daemon.clock(facts(bus=bus)))) is told
