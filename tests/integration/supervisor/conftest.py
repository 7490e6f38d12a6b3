from __future__ import annotations

import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from agentbus.runtime.platform import process_state

HERE = Path(__file__).parent
BOUND = 20.0


class Bus:
    """A runtime and a data directory, the daemons started on them, and what their dummies tell."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.runtime = base / "r"
        self.data = base / "d"
        self.config = base / "config.json"
        self.config.write_text(json.dumps({"data_directory": str(self.data)}))
        os.mkfifo(base / "e")
        self._events = os.open(base / "e", os.O_RDWR)
        self._told = b""
        self._daemons: list[Daemon] = []

    @property
    def socket(self) -> str:
        return str(self.runtime / "bus.sock")

    def start(self, left: str = "run", right: str = "run", **environment: str) -> Daemon:
        read, write = os.pipe()
        process = subprocess.Popen(
            [sys.executable, str(HERE / "dummies.py"), str(self.config), str(write), left, right],
            env={
                **os.environ,
                "AGENTBUS_RUNTIME_DIR": str(self.runtime),
                "AGENTBUS_TEST_EVENTS": str(self.base / "e"),
                "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[2])]),
                **environment,
            },
            pass_fds=[write],
            stderr=subprocess.PIPE,
        )
        os.close(write)
        daemon = Daemon(process, read)
        self._daemons.append(daemon)
        return daemon

    def event(self, kind: str, name: str = "", **fields: object) -> dict:
        """The next event of this kind, passing over others."""
        wanted = {"kind": kind, **({"name": name} if name else {}), **fields}
        while True:
            event = self._next_event()
            if wanted.items() <= event.items():
                return event

    def events_until(self, kind: str, name: str, **fields: object) -> list[dict]:
        """Everything told up to an event, which comes last."""
        wanted = {"kind": kind, "name": name, **fields}
        events = []
        while not events or not wanted.items() <= events[-1].items():
            events.append(self._next_event())
        return events

    def event_about_link(self) -> dict:
        """The next event that names the link between the dummies."""
        while True:
            event = self._next_event()
            if event.get("link") == "left-right":
                return event

    def _next_event(self) -> dict:
        while b"\n" not in self._told:
            ready, _, _ = select.select([self._events], [], [], BOUND)
            assert ready, "nothing more is told"
            self._told += os.read(self._events, 65536)
        line, _, self._told = self._told.partition(b"\n")
        return json.loads(line)

    def command(self, text: str) -> None:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(BOUND)
            sock.connect(self.socket)
            sock.sendall(text.encode())
            while sock.recv(1000):
                pass

    def log(self, name: str = "supervisor") -> str:
        return (self.data / "logs" / f"{name}.log").read_text()

    def logged(self, text: str, times: int = 1) -> None:
        """Returns when the supervisor has logged this so often."""
        until = time.monotonic() + BOUND
        while self.log().count(text) < times:
            assert time.monotonic() < until, f"{text!r} is not logged"
            time.sleep(0.01)

    def close(self) -> None:
        for daemon in self._daemons:
            daemon.end()
        os.close(self._events)


class Daemon:
    """One started daemon process."""

    def __init__(self, process: subprocess.Popen, report: int) -> None:
        self.process = process
        self.pid = process.pid
        self._report = report

    def report(self) -> dict:
        """The line on the report pipe, {} at its end without one."""
        ready, _, _ = select.select([self._report], [], [], BOUND)
        assert ready, "no report in time"
        line = os.read(self._report, 65536)
        return json.loads(line) if line else {}

    def ready(self) -> Daemon:
        assert self.report() == {"ready": True, "pid": self.pid}
        return self

    def children(self) -> dict[str, psutil.Process]:
        """The living processes below the supervisor, by the name that `ps` shows."""
        found = {}
        for process in psutil.Process(self.pid).children(recursive=True):
            title = " ".join(process.cmdline()).strip()
            name = title.removeprefix("agentbus: ") if title.startswith("agentbus") else "redis"
            found[name] = process
        return found

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        return self.process.wait(BOUND)

    def stderr(self) -> str:
        return self.process.stderr.read().decode()

    def end(self) -> None:
        below = []
        if self.process.poll() is None:
            below = psutil.Process(self.pid).children(recursive=True)
            self.process.kill()
            self.process.wait(BOUND)
        self.process.stderr.close()
        os.close(self._report)
        wait_until_gone(below)


def wait_until_gone(processes) -> None:
    """Ended; whether their new parent has reaped them is not ours to say."""
    until = time.monotonic() + BOUND
    for process in processes:
        while process_state(process.pid) != "gone":
            assert time.monotonic() < until, f"left running: {process}"
            time.sleep(0.01)


@pytest.fixture
def gone():
    return wait_until_gone


@pytest.fixture
def bus():
    base = Path(tempfile.mkdtemp(prefix="ab-", dir="/tmp"))
    bus = Bus(base)
    yield bus
    bus.close()
    shutil.rmtree(base)


@pytest.fixture
def daemon(bus):
    return bus.start().ready()
