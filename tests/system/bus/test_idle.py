"""A bus that nobody uses."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.support.daemon import Daemon
from tests.support.stdio import Adapter

DAYS = 3 * 24 * 3600


def test_the_daemon_stays_when_nobody_has_been_there_for_days(cold_bus: Daemon) -> None:
    clock = Path(cold_bus.directory, "clock.json")
    clock.write_text("{}")
    asked = msgspec.json.encode({"clock_file": str(clock)}).decode()
    cold_bus.environment["AGENTBUS_TEST"] = asked
    with Adapter(cold_bus.environment) as adapter:
        adapter.call("send", channel="general", content="the last word")
    before = {process["name"]: process["pid"] for process in cold_bus.status()["processes"]}
    clock.write_bytes(msgspec.json.encode({"wall": DAYS, "monotonic": DAYS}))
    with Adapter(cold_bus.environment) as adapter:
        assert adapter.call("history", channel="general")["messages"]
    after = {process["name"]: process["pid"] for process in cold_bus.status()["processes"]}
    assert after == before
