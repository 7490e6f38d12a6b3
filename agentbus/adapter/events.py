"""What the adapter's shell tells its core, and what the core asks of the shell.

Effects are carried out in their order. A written line is `Flushed` with its last byte, in the same
turn if the harness reads; it is `Withdrawn` when the core asked for that before its first byte.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from agentbus.config import Configuration
from agentbus.errors import AgentbusError
from agentbus.wire.events import Exit, WakeAt, Woke


class StdinData(msgspec.Struct, frozen=True):
    """Bytes from the harness."""

    data: bytes


class StdinClosed(msgspec.Struct, frozen=True):
    """The harness will say nothing more."""


class StdoutBroken(msgspec.Struct, frozen=True):
    """Nobody reads any more; what was not flushed never will be."""


class Asked(msgspec.Struct, frozen=True):
    """Asked to end (a signal), or the harness is gone."""

    reason: Literal["signal", "orphan"]


class Flushed(msgspec.Struct, frozen=True):
    """The last byte of a line is out."""

    token: int


class Withdrawn(msgspec.Struct, frozen=True):
    """The line was taken back; no byte of it is out."""

    token: int


class DaemonConnected(msgspec.Struct, frozen=True):
    """There is a connection; the configuration was read for it."""

    configuration: Configuration


class DaemonUnreachable(msgspec.Struct, frozen=True):
    """There is no connection: nobody listens, or `error` is why it must not be tried."""

    error: AgentbusError | None = None


class DaemonData(msgspec.Struct, frozen=True):
    """Bytes from the daemon."""

    data: bytes


class DaemonClosed(msgspec.Struct, frozen=True):
    """The connection is gone."""


class DaemonStarted(msgspec.Struct, frozen=True):
    """What became of `StartDaemon`; `error` None means that it is ready."""

    error: AgentbusError | None = None


Event = (
    StdinData
    | StdinClosed
    | StdoutBroken
    | Asked
    | Flushed
    | Withdrawn
    | DaemonConnected
    | DaemonUnreachable
    | DaemonData
    | DaemonClosed
    | DaemonStarted
    | Woke
)


class WriteStdout(msgspec.Struct, frozen=True):
    """Write a line to the harness; the shell answers with `Flushed`."""

    data: bytes
    token: int


class Withdraw(msgspec.Struct, frozen=True):
    """Take the line back if none of its bytes is out, and answer with `Withdrawn`."""

    token: int


class Connect(msgspec.Struct, frozen=True):
    """Read the configuration and connect to the daemon."""


class Disconnect(msgspec.Struct, frozen=True):
    """Close the connection; no `DaemonClosed` follows."""


class WriteDaemon(msgspec.Struct, frozen=True):
    """Write to the daemon; dropped where there is no connection."""

    data: bytes


class Complain(msgspec.Struct, frozen=True):
    """Tell whoever reads stderr what a person has to mend."""

    error: AgentbusError


class StartDaemon(msgspec.Struct, frozen=True):
    """Start a daemon; the shell answers with `DaemonStarted`."""


Effect = (
    WriteStdout
    | Withdraw
    | Connect
    | Disconnect
    | WriteDaemon
    | StartDaemon
    | Complain
    | WakeAt
    | Exit
)

__all__ = [
    "Asked",
    "Complain",
    "Connect",
    "DaemonClosed",
    "DaemonConnected",
    "DaemonData",
    "DaemonStarted",
    "DaemonUnreachable",
    "Disconnect",
    "Effect",
    "Event",
    "Exit",
    "Flushed",
    "StartDaemon",
    "StdinClosed",
    "StdinData",
    "StdoutBroken",
    "WakeAt",
    "Withdraw",
    "Withdrawn",
    "Woke",
    "WriteDaemon",
    "WriteStdout",
]
