"""A start that takes long: `agentbus daemon` says what it waits for, and returns once it is
true that the bus runs. Starts of many at once: one daemon is launched for all of them."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from agentbus.client import attempts
from agentbus.config import Settings
from agentbus.supervisor.redis_discovery import discover
from tests.support.daemon import BOUND, Daemon, wait
from tests.support.launches import Launches
from tests.support.stdio import Adapter, ToolError


def begin(bus: Daemon) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "agentbus", "daemon"],
        env=bus.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def slow_server(directory: Path, seconds: float) -> str:
    """A Redis that takes its time before it listens."""
    script = directory / "redis"
    server = discover(Settings()).executable
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] || sleep {seconds}\nexec "{server}" "$@"\n')
    os.chmod(script, 0o700)
    return str(script)


def test_a_recovery_is_waited_for_and_told(tmp_path: Path) -> None:
    with Daemon(redis_executable=slow_server(tmp_path, 8)) as bus:
        starting = begin(bus)
        out, error = starting.communicate(timeout=2 * BOUND)
        assert bus.status()["state"] == "ready"
        assert (starting.returncode, out) == (
            0,
            f"agentbus is running (pid {bus.supervisors()[0]})\n",
        )
        assert "agentbus is not ready yet: " in error
        assert "projection" in error


def test_a_database_that_another_program_holds_is_waited_for_and_told() -> None:
    with Daemon() as bus:
        bus.start()
        bus.stop()
        with closing(sqlite3.connect(bus.paths.database, isolation_level=None)) as other:
            other.execute("PRAGMA locking_mode=EXCLUSIVE")
            other.execute("BEGIN EXCLUSIVE")
            starting = begin(bus)
            assert starting.stderr is not None
            line = starting.stderr.readline()
            other.execute("COMMIT")
        out, _ = starting.communicate(timeout=2 * BOUND)
        assert line.startswith("agentbus is not ready yet: ")
        assert "writer" in line
        assert (starting.returncode, bus.status()["state"]) == (0, "ready")
        assert out.startswith("agentbus is running")
        log = Path(bus.paths.log("writer")).read_text()
        assert log.count("action=database_locked") == 1


def test_a_second_start_waits_for_the_recovery_of_the_first(tmp_path: Path) -> None:
    with Daemon(redis_executable=slow_server(tmp_path, 8)) as bus:
        starting = [begin(bus) for _ in range(2)]
        outputs = {each.communicate(timeout=2 * BOUND)[0] for each in starting}
        assert outputs == {f"agentbus is running (pid {bus.supervisors()[0]})\n"}
        assert bus.status()["state"] == "ready"


# ---- many at once

MANY = 8


def test_adapters_and_commands_at_once_launch_one_daemon() -> None:
    with Daemon() as bus, ExitStack() as stack:
        launches = Launches(bus)
        commands = [begin(bus) for _ in range(2)]
        adapters = [stack.enter_context(Adapter(bus.environment, greet=False)) for _ in range(MANY)]
        for adapter in adapters:
            adapter.greet()
        for adapter in adapters:
            adapter.call("whoami")
        told = {command.communicate(timeout=2 * BOUND)[0] for command in commands}
        assert told == {f"agentbus is running (pid {bus.supervisors()[0]})\n"}
        assert int(launches) == 1


def test_what_keeps_the_daemon_from_starting_is_told_to_each_who_waits() -> None:
    with Daemon() as bus, ExitStack() as stack:
        os.mkdir(bus.paths.data_directory)
        os.chmod(bus.paths.data_directory, 0o755)
        adapters = [stack.enter_context(Adapter(bus.environment, greet=False)) for _ in range(MANY)]
        for adapter in adapters:
            adapter.greet()
        for adapter in adapters:
            with pytest.raises(ToolError, match="open to other users") as caught:
                adapter.call("whoami")
            assert caught.value.code == "unsafe_permissions"


@pytest.mark.parametrize("victim", ["starter", "daemon"])
def test_a_start_killed_half_way_keeps_nobody_from_a_daemon(victim: str, tmp_path: Path) -> None:
    with Daemon(redis_executable=slow_server(tmp_path, 3)) as bus, ExitStack() as stack:
        launches = Launches(bus)
        first = begin(bus)
        assert wait(lambda: os.path.exists(bus.paths.socket))
        others = [stack.enter_context(Adapter(bus.environment)) for _ in range(3)]
        waiting = begin(bus)
        assert attempts.take(bus.paths.start_lock) is None
        os.kill(first.pid if victim == "starter" else bus.supervisors()[0], signal.SIGKILL)
        for adapter in others:
            adapter.call("whoami")
        out, _ = waiting.communicate(timeout=2 * BOUND)
        assert out == f"agentbus is running (pid {bus.supervisors()[0]})\n"
        assert int(launches) == (1 if victim == "starter" else 2)
        first.communicate(timeout=2 * BOUND)
        assert first.returncode == (-signal.SIGKILL if victim == "starter" else 1)
