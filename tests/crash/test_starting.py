"""A start that takes long: `agentbus daemon` says what it waits for, and returns once it is
true that the bus runs."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from agentbus.config import Settings
from agentbus.supervisor.redis_discovery import discover
from tests.support.daemon import BOUND, Daemon


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
