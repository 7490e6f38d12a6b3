"""Starting the daemon: detached from whoever starts it, its readiness told over a pipe.

`begin` returns at once; `Starting.fd` becomes readable when there is something to `read`. The
daemon is started by way of a helper that is gone at once, so that it is nobody's child: nobody but
init has to reap it.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from agentbus.config import Configuration
from agentbus.errors import AgentbusError, Unavailable
from agentbus.runtime.clock import SystemClock
from agentbus.runtime.paths import RUNTIME_VARIABLE, locate
from agentbus.wire.error_codes import ErrorData, from_data

READY_SECONDS: Final = 60.0
"""A daemon that has not reported after so long is given up on (it goes on by itself)."""

LOOK_SECONDS: Final = 1.0

FOREIGN: Final = ("CLAUDE", "CODEX", "GEMINI", "OPENCODE", "MCP", "ANTHROPIC", "OPENAI")
"""Prefixes of variables that belong to a harness, not to a daemon that serves all of them."""

_HELPER: Final = "import os,sys\nif os.fork(): os._exit(0)\nos.execv(sys.argv[1], sys.argv[1:])\n"


class Report(msgspec.Struct, frozen=True):
    """The one line that a starting daemon writes."""

    ready: bool = False
    pid: int = 0
    error: ErrorData | None = None


class Starting:
    """A daemon that was started and has not reported yet."""

    def __init__(self, fd: int, helper: Any) -> None:
        self.fd = fd
        self._helper = helper
        self._told = b""

    def read(self) -> Report | AgentbusError | None:
        """What the daemon reports, or why it will not; None while it has not said. Never blocks."""
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return None
        self._told += data
        if data and b"\n" not in self._told:
            return None
        self.close()
        return understand(self._told)

    def close(self) -> None:
        """Stops listening."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
            self._helper.wait()


def understand(told: bytes) -> Report | AgentbusError:
    """What a daemon reported; bytes without a whole line mean that it died."""
    line = told.partition(b"\n")[0]
    try:
        report = msgspec.json.decode(line, type=Report)
    except msgspec.MsgspecError:
        return Unavailable("the daemon ended before it was ready; its log tells why")
    return report if report.error is None else from_data(report.error)


def begin(configuration: Configuration, environ: Mapping[str, str] = os.environ) -> Starting:
    """Starts `python -m agentbus daemon`; one that runs already makes the new one say so and go."""
    import subprocess  # noqa: PLC0415 - heavy, and hardly ever needed by an adapter

    command = [sys.executable, "-P", "-m", "agentbus", "daemon", "--foreground"]
    if configuration.exists:
        command += ["--config", configuration.path]
    reading, writing = os.pipe()
    try:
        os.set_blocking(reading, False)
        helper = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _HELPER, *command, "--report-fd", str(writing)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(writing,),
            cwd="/",
            env=surroundings(configuration, environ),
            umask=0o077,
            start_new_session=True,
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    return Starting(reading, helper)


def surroundings(configuration: Configuration, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a daemon; it lives in `/`, where a relative path means another place."""
    given = clean(environ)
    if RUNTIME_VARIABLE in given:
        given[RUNTIME_VARIABLE] = locate(configuration.settings, environ).runtime_directory
    return given


def clean(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment without what belongs to a harness."""
    return {name: value for name, value in environ.items() if not name.startswith(FOREIGN)}


def start(
    configuration: Configuration,
    timeout: float = READY_SECONDS,
    meanwhile: Callable[[], object] = lambda: None,
) -> int:
    """Starts the daemon unless it runs, and waits until it is ready, or recovers and answers so;
    its pid. `meanwhile` is called about once a second.

    Raises the error that it reports, or Unavailable.
    """
    clock = SystemClock()
    starting = begin(configuration)
    deadline = clock.now().monotonic + timeout
    try:
        while True:
            left = deadline - clock.now().monotonic
            if left <= 0:
                logs = locate(configuration.settings).log_directory
                raise Unavailable(
                    f"the daemon was not ready after {timeout:.0f} s; its logs are in {logs}"
                )
            if not select.select([starting.fd], [], [], min(left, LOOK_SECONDS))[0]:
                meanwhile()
                continue
            told = starting.read()
            if isinstance(told, AgentbusError):
                raise told
            if told is not None:
                return told.pid
    finally:
        starting.close()
