"""Many adapters where nothing runs yet."""

from __future__ import annotations

from contextlib import ExitStack

from tests.support.daemon import Daemon, wait
from tests.support.stdio import Adapter

ADAPTERS = 20


def test_adapters_started_at_once_converge_on_one_daemon(cold_bus: Daemon) -> None:
    with ExitStack() as stack:
        adapters = [
            stack.enter_context(Adapter(cold_bus.environment, greet=False)) for _ in range(ADAPTERS)
        ]
        for adapter in adapters:
            adapter.greet()
        asked = [adapter.request("tools/call", name="whoami", arguments={}) for adapter in adapters]
        names = {
            adapter.structured(adapter.answer(number)["result"])["session"]
            for adapter, number in zip(adapters, asked, strict=True)
        }
        assert len(names) == ADAPTERS
        status = cold_bus.status()
        assert sum(row["attached"] for row in status["sessions"]) == ADAPTERS
        assert wait(lambda: cold_bus.supervisors() == [status["processes"][0]["pid"]])
        assert [item["restarts"] for item in status["processes"]] == [0] * len(status["processes"])


def test_the_first_call_is_carried_out_and_not_only_the_daemon_started(cold_bus: Daemon) -> None:
    with Adapter(cold_bus.environment) as one, Adapter(cold_bus.environment) as other:
        other.call("whoami")
        one.call("send", channel="general", content="first")
        [message] = other.call("recv", wait_seconds=30)["messages"]
        assert message["content"] == "first"
