"""Processes of the daemon that stand still, die again and again, or die with their parent: the bus
comes back, or says why it does not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agentbus.config import Settings
from agentbus.runtime.platform import command_line, process_state
from agentbus.supervisor.redis_discovery import discover
from tests.support import audit, redis
from tests.support.daemon import BOUND, Daemon, wait
from tests.support.stdio import Adapter, ToolError

pytestmark = pytest.mark.timeout(300)

CHILDREN = ("writer", "projector", "gateway", "indexer")
STEP = 15
SEEN = 10.0
"""Seconds in which a process that stands still is seen and replaced; two of them are patience."""


def replaced(process: str, old: int) -> Callable[[dict[str, Any]], bool]:
    """Whether the bus is ready with a successor of a process."""
    return lambda status: (
        status["state"] == "ready"
        and any(item["name"] == process and item["pid"] != old for item in status["processes"])
    )


def searching(bus: Daemon) -> None:
    """Waits for the indexer, which comes last."""
    bus.wait_until(lambda status: bool(status["index"]))


@pytest.mark.parametrize("process", [*CHILDREN, "redis"])
def test_a_process_that_stands_still_is_replaced(bus: Daemon, process: str) -> None:
    searching(bus)
    with audit.audited(bus) as traffic:
        traffic.go_on(STEP)
        old = bus.pid(process)
        began = time.monotonic()
        os.kill(old, signal.SIGSTOP)
        bus.wait_until(replaced(process, old))
        took = time.monotonic() - began
        print(f"{process} stopped: ready again after {took:.1f} s")
        assert took < SEEN
        assert process_state(old) == "gone"
        traffic.go_on(STEP)
        assert [traffic.reader.adapters, *(s.adapters for s in traffic.senders)] == [1] * 5
    log = Path(bus.paths.log("supervisor")).read_text()
    assert f"action=killed name={process} child={old} why=stopped" in log


@pytest.mark.parametrize("process", [*CHILDREN, "redis"])
def test_a_process_that_is_killed_is_back_soon(bus: Daemon, process: str) -> None:
    searching(bus)
    with Adapter(bus.environment) as adapter:
        adapter.call("send", channel="general", content="before")
        old = bus.kill(process)
        began = time.monotonic()
        adapter.call("send", channel="general", content="after")
        sent = time.monotonic() - began
        bus.wait_until(replaced(process, old))
        print(
            f"{process} killed: accepted after {sent:.2f} s, ready {time.monotonic() - began:.2f}"
        )
        found = adapter.call("search", query="after")["results"]
        assert [each["content"] for each in found] == ["after"]


def test_all_children_stopped_at_once_are_all_replaced(bus: Daemon) -> None:
    searching(bus)
    old = [bus.pid(process) for process in (*CHILDREN, "redis")]
    with Adapter(bus.environment) as adapter:
        adapter.call("whoami")
        for pid in old:
            os.kill(pid, signal.SIGSTOP)
        assert adapter.call("send", channel="general", content="x")["seq"] == 1
    assert wait(lambda: all(process_state(pid) == "gone" for pid in old))


@pytest.mark.parametrize("process", ["writer", "projector", "gateway", "redis"])
def test_a_process_that_keeps_dying_ends_the_daemon_with_its_name(
    bus: Daemon, process: str
) -> None:
    supervisor = bus.pid("supervisor")
    with Adapter(bus.environment) as adapter:
        adapter.call("send", channel="general", content="before", message_id="before")
        killed: set[int] = set()

        def kill() -> bool:
            for pid in children(supervisor, process):
                if pid not in killed:
                    killed.add(pid)
                    os.kill(pid, signal.SIGKILL)
            return process_state(supervisor) == "gone"

        assert wait(kill, 60)
        assert bus.exit_code(supervisor) == 1
        assert len(killed) <= 6
        log = Path(bus.paths.log("supervisor")).read_text()
        assert "action=daemon_failed" in log
        assert f"{process} keeps dying, the last time with signal 9" in log
        expected = "unavailable" if process == "redis" else "internal"
        assert f"action=daemon_failed code={expected} " in log
        if process != "gateway":  # which tells adapters of the end; without it they start another
            code, shown = status(bus)
            assert (code, shown["state"]) == (3, "stopped")
            assert f"{process} keeps dying, the last time with signal 9" in shown["reasons"][0]
        # the next call starts it, and nothing is lost
        assert adapter.call("send", channel="general", content="after")["seq"] == 2
        again = adapter.call("send", channel="general", content="before", message_id="before")
        assert again["duplicate"] is True


def status(bus: Daemon) -> tuple[int, dict[str, Any]]:
    """The exit code and the document of the command."""
    done = subprocess.run(
        [sys.executable, "-m", "agentbus", "status", "--json"],
        env=bus.environment,
        capture_output=True,
        timeout=BOUND,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


def children(supervisor: int, process: str) -> list[int]:
    """By the name that `ps` shows."""
    found = []
    with suppress(OSError):
        tasks = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text()
        for pid in map(int, tasks.split()):
            line = command_line(pid)
            redis_server = "valkey" in line and not line.startswith("agentbus")
            if line == f"agentbus: {process}" or (process == "redis" and redis_server):
                found.append(pid)
    return found


def test_an_indexer_that_keeps_dying_leaves_a_bus_without_search_that_says_so(bus: Daemon) -> None:
    searching(bus)
    with Adapter(bus.environment) as adapter:
        adapter.call("send", channel="general", content="findable")
        killed: set[int] = set()
        supervisor = bus.pid("supervisor")

        def given_up(status: dict[str, Any]) -> bool:
            for pid in children(supervisor, "indexer"):
                if pid not in killed:
                    killed.add(pid)
                    os.kill(pid, signal.SIGKILL)
            return any("the indexer died too often" in each for each in status["reasons"])

        status = bus.wait_until(given_up)
        assert status["state"] == "ready"
        assert status["index"] is None
        with pytest.raises(ToolError, match="the indexer died too often") as caught:
            adapter.call("search", query="findable")
        assert caught.value.code == "internal"
        assert adapter.call("send", channel="general", content="goes on")["seq"] == 2
        assert len(adapter.call("history", channel="general")["messages"]) == 2
        bus.stop()
        found = adapter.call("search", query="findable")["results"]
        assert [each["content"] for each in found] == ["findable"]


def test_what_was_restarted_is_a_warning_with_the_file_that_says_why(bus: Daemon) -> None:
    old = bus.kill("writer")
    status = bus.wait_until(replaced("writer", old))
    log = bus.paths.log("supervisor")
    assert f"writer was restarted once; {log} says why" in status["warnings"]
    assert f"action=died name=writer child={old} status=-9" in Path(log).read_text()


def test_a_killed_supervisor_takes_everything_along_and_the_next_start_works(bus: Daemon) -> None:
    searching(bus)
    pids = {item["name"]: item["pid"] for item in bus.status()["processes"]}
    assert set(pids) == {"supervisor", "redis", *CHILDREN}
    os.kill(pids["projector"], signal.SIGSTOP)  # who stands still cannot see its parent's end
    os.kill(pids["redis"], signal.SIGSTOP)
    began = time.monotonic()
    os.kill(pids["supervisor"], signal.SIGKILL)
    assert wait(lambda: all(process_state(pid) == "gone" for pid in pids.values()), 5)
    print(f"all gone after {time.monotonic() - began:.2f} s")
    bus.start()
    print(f"ready again {time.monotonic() - began:.2f} s after the supervisor's death")
    assert bus.status()["state"] == "ready"


def test_a_supervisor_that_stands_still_hinders_nobody_and_blames_nobody(bus: Daemon) -> None:
    searching(bus)
    before = {item["name"]: item["pid"] for item in bus.status()["processes"]}
    os.kill(before["supervisor"], signal.SIGSTOP)
    with Adapter(bus.environment) as adapter:
        until = time.monotonic() + 5.0
        sent = 0
        while time.monotonic() < until:
            sent = adapter.call("send", channel="general", content="x")["seq"]
        assert sent > 10
    os.kill(before["supervisor"], signal.SIGCONT)
    time.sleep(3.0)  # a few of its looks
    assert {item["name"]: item["pid"] for item in bus.status()["processes"]} == before


def test_an_orphaned_redis_is_ended_before_the_next_writes_its_snapshot(bus: Daemon) -> None:
    """As where the kernel does not end it with its parent."""
    with redis.of_bus(bus.paths) as sock:
        (path,) = [each for each in os.listdir(bus.paths.redis_directory) if each.endswith(".sock")]
        redis.ask(sock, (b"SAVE",))
    bus.stop()
    path = os.path.join(bus.paths.redis_directory, path)
    program = (
        "import fcntl, json, os, sys\n"
        "lock, path, executable, directory = sys.argv[1:]\n"
        "fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)\n"
        "fcntl.flock(fd, fcntl.LOCK_EX)\n"
        "os.set_inheritable(fd, True)\n"
        "os.ftruncate(fd, 0)\n"
        "os.pwrite(fd, json.dumps({'pid': os.getpid(), 'socket': path}).encode(), 0)\n"
        "os.execv(executable, [executable, '--port', '0', '--unixsocket', path, '--save', '',"
        " '--dir', directory, '--logfile', directory + '/orphan.log'])\n"
    )
    arguments = [bus.paths.redis_lock, path, discover(Settings()).executable, bus.directory]
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], start_new_session=True
    ) as orphan:
        assert wait(lambda: os.path.exists(path))
        bus.start()
        assert orphan.wait(BOUND) == -signal.SIGKILL
        bus.wait_until(lambda status: status["redis"]["healthy"])
        assert bus.pid("redis") != orphan.pid
    log = Path(bus.paths.log("supervisor")).read_text()
    assert f"action=redis_orphan_killed child={orphan.pid}" in log
