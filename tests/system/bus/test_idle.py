"""A bus that nobody uses."""

from __future__ import annotations

from tests.support.daemon import Daemon
from tests.support.stdio import Adapter

DAYS = 3 * 24 * 3600


def test_the_daemon_stays_when_nobody_has_been_there_for_days(cold_bus: Daemon) -> None:
    clock = cold_bus.clock()
    with Adapter(cold_bus.environment) as adapter:
        adapter.call("send", channel="general", content="the last word")
    before = {process["name"]: process["pid"] for process in cold_bus.status()["processes"]}
    clock.jump(DAYS, DAYS)
    with Adapter(cold_bus.environment) as adapter:
        assert adapter.call("history", channel="general")["messages"]
    after = {process["name"]: process["pid"] for process in cold_bus.status()["processes"]}
    assert after == before
