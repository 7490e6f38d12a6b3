"""Administration, whatever the settings of the running daemon are: status, stop and reset."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from typing import Any, Final

from agentbus.client.client import Client
from agentbus.config import Configuration
from agentbus.errors import NotRunning, Unavailable
from agentbus.runtime.clock import SystemClock
from agentbus.runtime.owners import Owner, living
from agentbus.runtime.paths import Paths, locate
from agentbus.runtime.platform import command_line

STATUS_SECONDS: Final = 10.0

STOP_SECONDS: Final = 60.0
"""A stop may take its 5 s, and the snapshot its own 30."""

UNREACHABLE_SECONDS: Final = 5.0
"""A daemon that has not answered for so long is not asked any more. One whose socket was removed
binds it anew within a second."""

LOOK_SECONDS: Final = 0.02


def status(configuration: Configuration) -> dict[str, Any]:
    """The status document. Raises NotRunning, and Unavailable where the daemon does not answer.

    Of a daemon that does not listen (yet, or any more) there is only `state` and `reasons`.
    """
    paths = locate(configuration.settings)
    try:
        with Client(paths.socket, STATUS_SECONDS) as client:
            return client.status()
    except NotRunning:
        owner = living(paths)
        if owner is None:
            raise
        return {
            "state": "starting",
            "reasons": [f"{_named(owner)} does not listen: it starts or ends just now"],
        }


def stop(configuration: Configuration, timeout: float = STOP_SECONDS) -> None:
    """Stops the daemon in order, and returns when its last process is gone; one that somebody else
    starts then is not stopped. One that cannot be asked, because its socket is gone or its gateway
    hangs, is sent SIGTERM.

    Raises NotRunning where none runs, Unavailable where it does not end in time, or where something
    else listens at its socket.
    """
    paths = locate(configuration.settings)
    clock = SystemClock()
    began = clock.now().monotonic
    owner = living(paths)
    if owner is None:
        _nobody_but(paths)
        raise NotRunning("no daemon runs")
    asked = signalled = False
    asking = owner.pid
    while (owner := living(paths)) is not None:
        if owner.pid != asking and (asked or signalled):
            return  # it has ended, and somebody else has started another one
        asking = owner.pid
        left = began + timeout - clock.now().monotonic
        if not signalled:
            asked = _ask_to_stop(paths.socket, left) or asked
        waited = clock.now().monotonic - began
        if waited >= timeout:
            raise Unavailable(
                f"{_named(owner)} has not ended in {timeout:.0f} s; `kill -9 {owner.pid}` ends it, "
                "and nothing that was accepted is lost"
            )
        if not asked and not signalled and waited >= UNREACHABLE_SECONDS:
            signalled = _signal(owner)
        select.select([], [], [], LOOK_SECONDS)


def reset(configuration: Configuration, timeout: float = STOP_SECONDS) -> None:
    """Has a running daemon destroy everything, and returns when the new bus serves. One that takes
    the place of a daemon that died meanwhile is asked again, where it has the old data still.

    Raises NotRunning where none runs, or none any more; Unavailable where there is no new bus in
    time.
    """
    paths = locate(configuration.settings)
    clock = SystemClock()
    deadline = clock.now().monotonic + timeout
    asked = living(paths)
    with Client(paths.socket, STATUS_SECONDS) as client:
        before = client.status()["instance"]
        client.reset()
    while clock.now().monotonic < deadline:
        owner = living(paths)
        if owner is None:
            raise NotRunning("the daemon ended before there was a new bus")
        with suppress(NotRunning, Unavailable), Client(paths.socket, STATUS_SECONDS) as client:
            instance = client.status()["instance"]
            if instance not in (before, "", None):
                return
            if instance and owner != asked:
                client.reset()
                asked = owner
        select.select([], [], [], LOOK_SECONDS)
    raise Unavailable("the daemon has not come back in time; `agentbus status` tells more")


def _ask_to_stop(path: str, left: float) -> bool:
    """Whether a daemon has said that it will; returns when it has closed the connection."""
    try:
        with Client(path, max(LOOK_SECONDS, min(left, UNREACHABLE_SECONDS))) as client:
            client.stop()
            client.wait_closed(left)
    except (NotRunning, Unavailable):
        return False
    return True


def _signal(owner: Owner) -> bool:
    """Whether SIGTERM was sent: only to what is a daemon by its name, as pids are used again."""
    line = command_line(owner.pid)
    if "agentbus" not in line or not ("supervisor" in line or "daemon" in line):
        return False
    with suppress(ProcessLookupError):
        os.kill(owner.pid, signal.SIGTERM)
    return True


def _nobody_but(paths: Paths) -> None:
    """Raises Unavailable where something listens although no daemon lives."""
    with suppress(NotRunning), Client(paths.socket, LOOK_SECONDS):
        if living(paths) is None:
            raise Unavailable(
                f"no daemon runs, but another program listens at {paths.socket}, which is not "
                "touched; end that program, or remove the file"
            )


def _named(owner: Owner) -> str:
    return f"the daemon (process {owner.pid})" if owner.pid else "a process of the daemon"
