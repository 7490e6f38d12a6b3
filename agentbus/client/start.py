"""A daemon that is needed: found, waited for, or started, and its readiness told.

Who needs a daemon at the same time shares one attempt (`attempts`). `Starting.read` is to be called
at once, and then when `fd` is readable; while that is -1, another's attempt, or a daemon that lives
already, is waited for, and `read` is to be called each `POLL_SECONDS`.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from agentbus.client import attempts
from agentbus.client.launch import launch, surroundings
from agentbus.config import Configuration
from agentbus.errors import AgentbusError, Unavailable, UnsafePermissions
from agentbus.runtime import refusals
from agentbus.runtime.clock import SystemClock
from agentbus.runtime.owners import Owner, living
from agentbus.runtime.paths import locate, prepare_runtime
from agentbus.wire.error_codes import ErrorData, from_data

READY_SECONDS: Final = 60.0
"""A daemon that has not reported after so long is given up on (it goes on by itself)."""

LOOK_SECONDS: Final = 1.0
POLL_SECONDS: Final = 0.05

SHARED_SECONDS: Final = 30.0
"""An attempt of another that has not ended for so long is not waited for: it may stand still."""

LIVING_SECONDS: Final = 2.0
"""A daemon that lives and does not listen for so long gets a successor, which waits for its end, or
says what is wrong with it."""


class Report(msgspec.Struct, frozen=True):
    """The one line that a starting daemon writes."""

    ready: bool = False
    pid: int = 0
    error: ErrorData | None = None


class Starting:
    """A daemon that is wanted and has not reported yet."""

    def __init__(self, configuration: Configuration, environ: Mapping[str, str]) -> None:
        self.fd = -1
        self._configuration = configuration
        self._environ = surroundings(configuration, environ)
        self._paths = locate(configuration.settings, environ)
        self._kind = attempts.kind(configuration, self._environ)
        self._before = attempts.look(self._paths.start_lock)
        self._began = _monotonic()
        self._helper: Any = None
        self._told = b""

    def read(self) -> Report | AgentbusError | None:
        """What the daemon reports, or why it will not; None while it has not said. Never waits."""
        try:
            return self._join() if self.fd < 0 else self._hear()
        except AgentbusError as error:
            return error
        except OSError as error:
            return refusals.told(error, "no daemon can be started")

    def wait(self, seconds: float) -> None:
        """Until `read` is to be called, but no longer than that."""
        if self.fd >= 0:
            select.select([self.fd], [], [], seconds)
        else:
            select.select([], [], [], min(seconds, POLL_SECONDS))

    def close(self) -> None:
        """Stops listening."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
            self._helper.wait()

    def _hear(self) -> Report | AgentbusError | None:
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return None
        self._told += data
        if data and b"\n" not in self._told:
            return None
        self.close()
        return understand(self._told)

    def _join(self) -> Report | AgentbusError | None:
        waited = _monotonic() - self._began
        prepare_runtime(self._paths)
        try:
            lock = attempts.take(self._paths.start_lock)
        except OSError:  # a directory, a link or a full disk are no reason not to start
            self._launch(None)
            return None
        try:
            return self._decide(lock, waited)
        finally:
            if lock is not None:
                os.close(lock)

    def _decide(self, lock: int | None, waited: float) -> Report | AgentbusError | None:
        told = self._shared()
        if told is not None:
            return told
        owner = self._alive() if lock is not None else None
        if owner is not None and _listens(self._paths.socket):
            return Report(ready=True, pid=owner.pid)
        free = lock is not None and (owner is None or waited >= LIVING_SECONDS)
        if free or waited >= SHARED_SECONDS:
            self._launch(lock)
        return None

    def _shared(self) -> Report | AgentbusError | None:
        """How an attempt went that ended while we waited; one that others made another way, and
        that failed, says nothing about ours."""
        content = attempts.look(self._paths.start_lock)
        found = attempts.outcome(content) if content != self._before else None
        if found is None:
            return None
        told = understand(found[1])
        return told if isinstance(told, Report) or found[0] == self._kind else None

    def _alive(self) -> Owner | None:
        try:
            return living(self._paths)
        except UnsafePermissions:  # the daemon tells best what is wrong with its lock
            return None

    def _launch(self, lock: int | None) -> None:
        others = []
        if lock is not None:
            with suppress(OSError):  # a full disk: the others try themselves
                attempts.begin(lock, self._kind)
                others.append(lock)
        self.fd, self._helper = launch(self._configuration, self._environ, others)


def _listens(path: str) -> bool:
    """Whether somebody accepts connections at a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except BlockingIOError:  # many wait already
            return True
        except OSError:
            return False
    return True


def understand(told: bytes) -> Report | AgentbusError:
    """What a daemon reported; bytes without a whole line mean that it died."""
    line = told.partition(b"\n")[0]
    try:
        report = msgspec.json.decode(line, type=Report)
    except msgspec.MsgspecError:
        return Unavailable("the daemon ended before it was ready; its log tells why")
    return report if report.error is None else from_data(report.error)


def begin(configuration: Configuration, environ: Mapping[str, str] = os.environ) -> Starting:
    """A start of the daemon, unless it runs or is being started; see the module."""
    return Starting(configuration, environ)


def start(
    configuration: Configuration,
    timeout: float = READY_SECONDS,
    meanwhile: Callable[[], object] = lambda: None,
) -> int:
    """Starts the daemon unless it runs, and waits until it is ready, or recovers and answers so;
    its pid. `meanwhile` is called about once a second.

    Raises the error that it reports, or Unavailable.
    """
    starting = begin(configuration)
    began = looked = _monotonic()
    try:
        while True:
            told = starting.read()
            if isinstance(told, AgentbusError):
                raise told
            if told is not None:
                return told.pid
            now = _monotonic()
            left = began + timeout - now
            if left <= 0:
                logs = locate(configuration.settings).log_directory
                raise Unavailable(
                    f"the daemon was not ready after {timeout:.0f} s; its logs are in {logs}"
                )
            if now - looked >= LOOK_SECONDS:
                looked = now
                meanwhile()
            starting.wait(min(left, LOOK_SECONDS))
    finally:
        starting.close()


def _monotonic() -> float:
    return SystemClock().now().monotonic
