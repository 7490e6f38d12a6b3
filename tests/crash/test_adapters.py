"""What an adapter that lives on does about a daemon that does not: the harness sees one pipe, and
its calls are answered."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from tests.support.daemon import BOUND, Daemon, wait
from tests.support.stdio import Adapter, ToolError

SENDS = 60


def begin(adapter: Adapter, number: int) -> int:
    """A send whose answer is not waited for."""
    arguments = {"channel": "general", "content": f"{number}", "message_id": f"side-{number}"}
    return adapter.request("tools/call", name="send", arguments=arguments)


def stored(bus: Daemon) -> list[str]:
    """Ids in the order of their positions, from the file of a bus that has stopped."""
    with closing(sqlite3.connect(f"file:{bus.paths.database}?mode=ro", uri=True)) as connection:
        return [key for (key,) in connection.execute("SELECT message_id FROM messages ORDER BY id")]


@pytest.mark.parametrize("process", ["writer", "projector", "gateway", "redis", "supervisor"])
def test_sends_side_by_side_keep_their_order_around_a_death(bus: Daemon, process: str) -> None:
    """An agent may call `send` many times in one turn; its harness waits for none of them."""
    with Adapter(bus.environment) as adapter:
        adapter.call("whoami")
        calls: list[int] = []
        for first in range(0, 3 * SENDS, SENDS):
            calls += [begin(adapter, number) for number in range(first, first + SENDS // 2)]
            killed = bus.kill(process)
            calls += [begin(adapter, number) for number in range(first + SENDS // 2, first + SENDS)]
            for call in calls[first:]:
                adapter.structured(adapter.answer(call)["result"])
            bus.wait_until(
                lambda status, killed=killed: (
                    status["state"] == "ready"
                    and all(item["pid"] != killed for item in status["processes"])
                )
            )
    bus.stop()
    assert stored(bus) == [f"side-{number}" for number in range(3 * SENDS)]


def stop_by_hand(bus: Daemon) -> None:
    command = [sys.executable, "-m", "agentbus", "stop"]
    done = subprocess.run(command, env=bus.environment, capture_output=True, timeout=BOUND)
    assert done.stdout == b"agentbus has stopped\n"


def test_an_idle_adapter_leaves_a_stopped_bus_alone_and_its_next_call_starts_it(
    bus: Daemon,
) -> None:
    with Adapter(bus.environment, "--application", "a", "--session", "idle") as idle:
        name = idle.call("whoami")["display_name"]
        stop_by_hand(bus)
        time.sleep(1.0)  # as long as it would take to start one
        assert bus.ended()
        assert bus.supervisors() == []
        began = time.monotonic()
        sent = idle.call("send", channel="general", content="back again")
        print(f"started and accepted after {time.monotonic() - began:.1f} s")
        assert sent["seq"] == 1
        assert idle.call("whoami")["display_name"] == name
        assert bus.status()["state"] == "ready"


def test_a_waiting_recv_ends_with_the_stop_and_the_next_one_starts_the_bus(bus: Daemon) -> None:
    with Adapter(bus.environment) as waiting:
        waiting.call("whoami")
        call = waiting.request("tools/call", name="recv", arguments={"wait_seconds": 5})
        waiting.ask("ping")
        began = time.monotonic()
        stop_by_hand(bus)
        with pytest.raises(ToolError, match="the bus was stopped; call again"):
            waiting.structured(waiting.answer(call)["result"])
        assert time.monotonic() - began < BOUND
        assert waiting.call("recv")["messages"] == []
        assert bus.status()["state"] == "ready"


def test_many_idle_adapters_start_one_bus_when_they_call_at_once(bus: Daemon) -> None:
    adapters = [Adapter(bus.environment, "--application", "a", "--session", f"{n}") for n in "1234"]
    try:
        for each in adapters:
            each.call("whoami")
        stop_by_hand(bus)
        calls = [each.request("tools/call", name="whoami", arguments={}) for each in adapters]
        for each, call in zip(adapters, calls, strict=True):
            each.structured(each.answer(call)["result"])
        assert wait(lambda: bus.supervisors() == [bus.pid("supervisor")])
    finally:
        for each in adapters:
            each.end()


@pytest.mark.parametrize("process", ["supervisor", "gateway"])
def test_row_11_a_daemon_killed_in_a_call_is_back_on_the_same_pipe(
    bus: Daemon, process: str
) -> None:
    with (
        Adapter(bus.environment, "--application", "a", "--session", "r") as reader,
        Adapter(bus.environment, "--application", "a", "--session", "s") as sender,
    ):
        reader.call("whoami")
        waiting = reader.request("tools/call", name="recv", arguments={"wait_seconds": 30})
        reader.ask("ping")
        pids = (reader.pid, sender.pid)
        bus.kill(process)
        began = time.monotonic()
        sent = sender.call("send", channel="general", content="after the death")
        print(f"accepted {time.monotonic() - began:.2f} s after the death of the {process}")
        (got,) = reader.structured(reader.answer(waiting)["result"])["messages"]
        assert got["message_id"] == sent["message_id"]
        assert (reader.pid, sender.pid) == pids
        assert reader.ask("ping") == {}


def test_a_stop_asked_for_by_signal_is_an_intentional_one_too(bus: Daemon) -> None:
    with Adapter(bus.environment) as idle:
        idle.call("whoami")
        (supervisor,) = bus.supervisors()
        os.kill(supervisor, signal.SIGTERM)
        assert bus.exit_code(supervisor) == 0
        time.sleep(1.0)
        assert bus.supervisors() == []
        assert idle.call("whoami")
