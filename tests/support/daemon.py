"""A daemon of the test's own: real processes in a temporary place, nothing left running."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import psutil

from agentbus import config
from agentbus.runtime.paths import locate
from agentbus.supervisor import locks
from tests.support.peers import Peer

BOUND = 30.0
"""Seconds after which an event that a test waits for counts as missing."""


class Daemon:
    """Place, configuration and processes of one bus. Use as a context manager; `start` is apart,
    since adapters start daemons too."""

    def __init__(self, *, runtime: str | None = None, **settings: Any) -> None:
        """`runtime` is the runtime directory of another, for two that meet."""
        self.directory = tempfile.mkdtemp(prefix="ab-", dir="/tmp")
        self.config_path = os.path.join(self.directory, "config.json")
        document = {"data_directory": os.path.join(self.directory, "data"), **settings}
        Path(self.config_path).write_bytes(msgspec.json.encode(document))
        self.environment = {
            **os.environ,
            "AGENTBUS_RUNTIME_DIR": runtime or os.path.join(self.directory, "run"),
            "AGENTBUS_CONFIG": self.config_path,
        }
        self.paths = locate(config.load(self.config_path).settings, self.environment)
        self._children: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Daemon:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        finally:
            self._end_all()
            if kind is not None and os.environ.get("AGENTBUS_KEEP"):
                sys.stderr.write(f"kept: {self.directory}\n")
            else:
                shutil.rmtree(self.directory, ignore_errors=True)

    def clock(self) -> TestClock:
        """The time of its processes from the next start on, which the test moves."""
        path = os.path.join(self.directory, "clock.json")
        self.environment["AGENTBUS_TEST"] = msgspec.json.encode({"clock_file": path}).decode()
        return TestClock(Path(path))

    def start(self) -> int:
        """Starts the daemon and waits for it; the pid of its supervisor."""
        reader, writer = os.pipe()
        command = [sys.executable, "-m", "agentbus", "daemon", "--foreground"]
        command += ["--config", self.config_path, "--report-fd", str(writer)]
        child = subprocess.Popen(
            command,
            env=self.environment,
            pass_fds=(writer,),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._children.append(child)
        os.close(writer)
        with open(reader, "rb") as report:
            line = report.readline()
        assert line, "the daemon died before it was ready"
        answer = msgspec.json.decode(line)
        assert "ready" in answer, answer
        pid: int = answer["pid"]
        return pid

    def stop(self) -> None:
        """An orderly stop of whatever serves this place; nothing where nothing does."""
        with suppress(OSError), Peer(self.paths.socket, greet=False) as peer:
            peer.call("stop")
        self._reap_until(self.ended)
        assert self.ended(), "the daemon has not ended"

    def exit_code(self, pid: int) -> int:
        """Of a daemon started here, once it has ended."""
        (child,) = [each for each in self._children if each.pid == pid]
        return child.wait(BOUND)

    def ended(self) -> bool:
        """Whether no process of a daemon is left: all of them hold the lock."""
        try:
            with open(self.paths.lock, "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return True
        except BlockingIOError:
            return False
        return True

    def peer(self, **hello: Any) -> Peer:
        """A new connection that has said hello."""
        return Peer(self.paths.socket, **hello)

    def status(self) -> dict[str, Any]:
        """The document of `agentbus status --json`."""
        with self.peer() as peer:
            status: dict[str, Any] = peer.call("status")["status"]
        return status

    def pid(self, process: str) -> int:
        """Of one of its processes (supervisor, writer, projector, gateway, indexer, redis), once it
        runs: it may be about to be started again."""
        status = self.wait_until(
            lambda status: process in [item["name"] for item in status["processes"]]
        )
        found = {item["name"]: item["pid"] for item in status["processes"]}
        pid: int = found[process]
        return pid

    def kill(self, process: str) -> int:
        """`kill -9` of one of its processes; returns its pid."""
        pid = self.pid(process)
        os.kill(pid, signal.SIGKILL)
        return pid

    def wait_until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first status that fulfils a condition; each answer is asked for when it can be."""
        seen: dict[str, Any] = {}

        def holds() -> bool:
            with suppress(OSError, EOFError):
                seen.update(self.status())
                return condition(seen)
            return False

        assert wait(holds), f"never came about; the last status is {seen}"
        return seen

    def wait_replaced(self, process: str, killed: int) -> None:
        """Until a successor of a killed process serves."""
        self.wait_until(
            lambda status: any(
                item["name"] == process and item["pid"] != killed for item in status["processes"]
            )
        )

    def _reap_until(self, condition: Callable[[], bool]) -> None:
        wait(lambda: all(child.poll() is not None for child in self._children) and condition())

    def supervisors(self) -> list[int]:
        """Pids of all daemons of this place, also of such as are about to leave it to another."""
        parents: dict[int, int] = {}
        for process in _processes(self._holds_lock):
            with suppress(psutil.Error):  # it has ended meanwhile
                parents[process.pid] = process.ppid()
        return [pid for pid, parent in parents.items() if parent not in parents]

    def _holds_lock(self, process: psutil.Process) -> bool:
        return any(file.path == self.paths.lock for file in process.open_files())

    def _is_ours(self, process: psutil.Process) -> bool:
        mark = self.environment["AGENTBUS_RUNTIME_DIR"]
        return process.environ().get("AGENTBUS_RUNTIME_DIR") == mark

    def _end_all(self) -> None:
        """Kills what a failed test left: exactly the processes whose bus this is."""
        for process in _processes(lambda each: self._holds_lock(each) or self._is_ours(each)):
            with suppress(psutil.Error):
                process.kill()
        for child in self._children:
            child.wait(BOUND)


class TestClock:
    """Seconds that the clocks of a daemon are ahead of the machine's."""

    __test__ = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self.wall = self.monotonic = 0.0
        self.jump(0.0, 0.0)

    def jump(self, wall: float, monotonic: float) -> None:
        """At once, for all processes, from one reading of the clock to the next."""
        self.wall += wall
        self.monotonic += monotonic
        shift = {"wall": self.wall, "monotonic": self.monotonic}
        new = self._path.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(shift))
        new.replace(self._path)


def owner(lock: str) -> int:
    """The process that a lock file names: the supervisor, or Redis."""
    found = locks.read(lock)
    assert found is not None
    return found.pid


def _processes(wanted: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    """The user's processes of some kind."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.uids().real == os.getuid() and wanted(process):
                found.append(process)
    return found


def wait(condition: Callable[[], bool], bound: float = BOUND) -> bool:
    """Whether a condition that no descriptor tells of came about within a bound."""
    deadline = time.monotonic() + bound
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
