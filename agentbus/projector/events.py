"""What the projector's core is told and what it asks for, beside what all cores share.

A connection is numbered by the core. Requests on it are answered in order, one `Replied` each; a
connection ends with `Disconnected`, whether it came up or not, and nothing follows from it.
"""

from __future__ import annotations

import msgspec

from agentbus.mirror.resp import Command, Reply
from agentbus.wire.events import (
    Closed,
    Exit,
    Note,
    Opened,
    Received,
    Send,
    TurnEnded,
    WakeAt,
    Woke,
)


class Connected(msgspec.Struct, frozen=True):
    """The connection takes requests."""

    connection: int


class Disconnected(msgspec.Struct, frozen=True):
    """The connection is gone, or could not be made; not sent after `Disconnect`."""

    connection: int
    reason: str


class Replied(msgspec.Struct, frozen=True):
    """One reply a command of the oldest request that is unanswered."""

    connection: int
    replies: list[Reply]


class Connect(msgspec.Struct, frozen=True):
    """Connect to the Unix socket at `path`."""

    connection: int
    path: str


class Disconnect(msgspec.Struct, frozen=True):
    """Close the connection."""

    connection: int


class Ask(msgspec.Struct, frozen=True):
    """Write these commands."""

    connection: int
    commands: list[Command]


Event = Opened | Closed | Received | TurnEnded | Woke | Connected | Disconnected | Replied
Effect = Send | WakeAt | Exit | Connect | Disconnect | Ask | Note
