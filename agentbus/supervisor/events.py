"""What the supervisor's core is told, and what it asks for: closed unions both."""

from __future__ import annotations

from typing import Any

import msgspec

from agentbus.runtime.platform import ProcessState
from agentbus.supervisor.handover import End
from agentbus.wire.error_codes import Failure
from agentbus.wire.events import Exit, WakeAt, Woke
from agentbus.wire.links import FromChild

# ---- events --------------------------------------------------------------------------------------


class Started(msgspec.Struct, frozen=True):
    """The first event: locks, listener and Redis' executable are there."""


class Forked(msgspec.Struct, frozen=True):
    """A process that was asked for by `Fork` or `StartRedis` runs."""

    name: str
    pid: int
    socket_path: str = ""
    """Where Redis is going to listen."""


class ForkFailed(msgspec.Struct, frozen=True):
    """It could not be started."""

    name: str
    reason: str


class RedisHeld(msgspec.Struct, frozen=True):
    """A Redis of ours from before still ends; `StartRedis` has to be asked again."""

    pid: int


class RedisListens(msgspec.Struct, frozen=True):
    """The server with this pid takes connections."""

    pid: int


class Died(msgspec.Struct, frozen=True):
    """A process was reaped, and everything it said was passed on before. `status` is its exit
    code, or minus the signal that ended it."""

    name: str
    pid: int
    status: int


class Said(msgspec.Struct, frozen=True):
    """A child's message."""

    name: str
    message: FromChild


class FellSilent(msgspec.Struct, frozen=True):
    """A child's control link is closed or talks nonsense; it is of no use any more."""

    name: str
    pid: int


class Observed(msgspec.Struct, frozen=True):
    """What the kernel says of the processes and of the sockets; answers `Observe`."""

    states: dict[str, ProcessState]
    redis_lost: bool = False
    """Redis' socket is not where it was made, or another program's is."""
    displaced: str = ""
    """Says that another daemon serves at our socket, where one does."""


class Wiped(msgspec.Struct, frozen=True):
    """The bus' data are gone; `reason` says why not all of them, empty otherwise."""

    reason: str = ""


class StopSignal(msgspec.Struct, frozen=True):
    """SIGTERM, SIGINT or SIGHUP."""

    number: int


Event = (
    Started
    | Forked
    | ForkFailed
    | RedisHeld
    | RedisListens
    | Died
    | Said
    | FellSilent
    | Observed
    | StopSignal
    | Wiped
    | Woke
)

# ---- effects -------------------------------------------------------------------------------------


class Fork(msgspec.Struct, frozen=True):
    """Fork a service and give it these ends. Answered by `Forked` or `ForkFailed`."""

    name: str
    ends: list[End]


class StartRedis(msgspec.Struct, frozen=True):
    """Start the dedicated server. Answered by `Forked`, `ForkFailed` or `RedisHeld`."""

    keep_snapshot: bool


class ProbeRedis(msgspec.Struct, frozen=True):
    """See whether it listens: `RedisListens`, or nothing."""

    pid: int


class Observe(msgspec.Struct, frozen=True):
    """Ask the kernel about all living processes, and see to the sockets."""


class Tell(msgspec.Struct, frozen=True):
    """A message for a child."""

    name: str
    message: Any


class HandEnd(msgspec.Struct, frozen=True):
    """Give a running child a new end, with `Hand`."""

    end: End


class DropEnd(msgspec.Struct, frozen=True):
    """Close an end that nobody needs."""

    end: End


class Kill(msgspec.Struct, frozen=True):
    """SIGKILL, or SIGTERM where `gently`."""

    name: str
    pid: int
    gently: bool = False


class Wipe(msgspec.Struct, frozen=True):
    """Remove the database, the snapshot and the index; nobody uses them. Answered by `Wiped`."""


class CloseListener(msgspec.Struct, frozen=True):
    """Nobody will accept any more: those who wait, and those who come, are to be refused."""


class ReportReady(msgspec.Struct, frozen=True):
    """Tell whoever started the daemon that it serves."""


class ReportFailure(msgspec.Struct, frozen=True):
    """Tell whoever started the daemon, and the log, why it ends."""

    failure: Failure


class Note(msgspec.Struct, frozen=True):
    """A line for the log."""

    level: str
    action: str
    fields: dict[str, Any]


Effect = (
    Fork
    | StartRedis
    | ProbeRedis
    | Observe
    | Tell
    | HandEnd
    | DropEnd
    | Kill
    | Wipe
    | CloseListener
    | ReportReady
    | ReportFailure
    | Note
    | WakeAt
    | Exit
)
