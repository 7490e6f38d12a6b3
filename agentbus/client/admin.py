"""Administration, whatever the settings of the running daemon are: status, stop and reset."""

from __future__ import annotations

import fcntl
import os
import select
from contextlib import suppress
from typing import Any, Final

from agentbus.client.client import Client
from agentbus.config import Configuration
from agentbus.errors import NotRunning, Unavailable
from agentbus.runtime.clock import SystemClock
from agentbus.runtime.paths import locate

STATUS_SECONDS: Final = 10.0

STOP_SECONDS: Final = 60.0
"""A stop may take its 5 s, and the snapshot its own 30."""

LOOK_SECONDS: Final = 0.02


def status(configuration: Configuration) -> dict[str, Any]:
    """The status document. Raises NotRunning."""
    path = locate(configuration.settings).socket
    with Client(path, STATUS_SECONDS) as client:
        return client.status()


def stop(configuration: Configuration, timeout: float = STOP_SECONDS) -> None:
    """Stops the daemon in order, and returns when its last process is gone.

    Raises NotRunning where none runs, Unavailable where it does not end in time.
    """
    paths = locate(configuration.settings)
    clock = SystemClock()
    deadline = clock.now().monotonic + timeout
    asked = False
    while True:
        try:
            _ask_to_stop(paths.socket, deadline - clock.now().monotonic)
            asked = True
        except NotRunning:
            if not asked and not is_locked(paths.lock):
                raise
        if not is_locked(paths.lock):
            return
        if clock.now().monotonic >= deadline:
            raise Unavailable("the daemon has not ended in time; `agentbus status` tells more")
        select.select([], [], [], LOOK_SECONDS)


def reset(configuration: Configuration, timeout: float = STOP_SECONDS) -> None:
    """Has a running daemon destroy everything, and returns when the new bus serves.

    Raises NotRunning where none runs, Unavailable where there is no new bus in time.
    """
    path = locate(configuration.settings).socket
    clock = SystemClock()
    deadline = clock.now().monotonic + timeout
    with Client(path, STATUS_SECONDS) as client:
        before = client.status()["instance"]
        client.reset()
    while clock.now().monotonic < deadline:
        with suppress(NotRunning, Unavailable), Client(path, STATUS_SECONDS) as client:
            if client.status()["instance"] not in (before, "", None):
                return
        select.select([], [], [], LOOK_SECONDS)
    raise Unavailable("the daemon has not come back in time; `agentbus status` tells more")


def _ask_to_stop(path: str, timeout: float) -> None:
    """Returns when the daemon has closed the connection, or does not answer."""
    with Client(path, max(timeout, LOOK_SECONDS)) as client, suppress(Unavailable):
        client.stop()
        client.wait_closed(timeout)


def is_locked(path: str) -> bool:
    """Whether a daemon, or one of its processes, lives: they all hold the lock."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
