"""What the daemon says, and what its locks say of it."""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import Any, Final

import msgspec

from agentbus.cli.doctor.facts import Bus
from agentbus.cli.snapshot import Snapshot, read
from agentbus.client.client import Client
from agentbus.config import Configuration
from agentbus.errors import (
    AgentbusError,
    ConfigMismatch,
    InternalError,
    NotRunning,
    Unavailable,
    UnsafePermissions,
    VersionMismatch,
)
from agentbus.runtime import owners
from agentbus.runtime.clock import SystemClock
from agentbus.runtime.failures import last_failure
from agentbus.runtime.paths import Paths

ANSWER_SECONDS: Final = 0.6
"""What a daemon has for each of two answers: it gives them in milliseconds."""


def ask(configuration: Configuration | None, paths: Paths) -> Bus:
    """Whatever it meets is told, not raised. Without settings nothing is known of the data."""
    known = Bus(paths.socket, not paths.socket.startswith(f"{paths.runtime_directory}/"))
    try:
        owner = owners.living(paths) if configuration else _by_runtime(paths)
        other = _other(paths) if configuration and owner is None else None
    except AgentbusError as error:
        return msgspec.structs.replace(known, silence=error)
    failure = last_failure(paths.log("supervisor")) if configuration and owner is None else None
    known = msgspec.structs.replace(
        known,
        failure=failure,
        pid=None if owner is None else owner.pid,
        other=None if other is None else other.runtime_directory,
        other_pid=0 if other is None else other.pid,
    )
    return _answers(known, configuration)


def _by_runtime(paths: Paths) -> owners.Owner | None:
    if not owners.is_locked(paths.lock):
        return None
    return owners.read(paths.lock) or owners.Owner(0, paths.socket)


def _other(paths: Paths) -> owners.Owner | None:
    """The daemon of another runtime directory that has the data."""
    if not owners.is_locked(paths.data_lock):
        return None
    return owners.read(paths.data_lock) or owners.Owner(0, "", "another runtime directory")


def _answers(known: Bus, configuration: Configuration | None) -> Bus:
    try:
        with Client(known.socket, ANSWER_SECONDS) as client:
            if known.pid is None:
                raise Unavailable(
                    f"no daemon runs, but another program listens at {known.socket}; end that "
                    "program, or remove the file"
                )
            snapshot = read(client.status())
            refusal = _refusal(client, configuration)
    except NotRunning as error:
        return known if known.pid is None else msgspec.structs.replace(known, silence=error)
    except AgentbusError as error:
        return msgspec.structs.replace(known, silence=error)
    except msgspec.MsgspecError as error:
        silence = InternalError(f"its status cannot be read ({error})")
        return msgspec.structs.replace(known, silence=silence)
    age = _age(snapshot, known.pid)
    return msgspec.structs.replace(known, snapshot=snapshot, refusal=refusal, age=age)


def _refusal(client: Client, configuration: Configuration | None) -> AgentbusError | None:
    """Why it would serve no adapter of ours; a daemon that does not know its bus yet is silent."""
    try:
        client.hello(configuration)
    except (ConfigMismatch, VersionMismatch, UnsafePermissions) as error:
        return error
    except AgentbusError:
        return None  # its state tells why
    return None


def _age(snapshot: Snapshot, pid: int | None) -> float | None:
    """Seconds since the supervisor was started, by the kernel."""
    psutil: Any = importlib.import_module("psutil")
    with suppress(psutil.Error):
        found = {each.name: each.pid for each in snapshot.processes}.get("supervisor", pid)
        age = SystemClock().now().wall - psutil.Process(found).create_time()
        return float(age)
    return None
