"""What the writer's core is told, what it asks for, and the names of its log lines."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from agentbus.wire.events import (
    Closed,
    Exit,
    Opened,
    Received,
    Send,
    TurnEnded,
    WakeAt,
    Woke,
)


class Note(msgspec.Struct, frozen=True):
    """A line for the log; fields hold no message contents."""

    level: Literal["info", "warn", "error"]
    action: str
    fields: dict[str, Any]


Event = Opened | Closed | Received | TurnEnded | Woke
Effect = Send | WakeAt | Exit | Note
