"""What the writer's core is told, what it asks for, and the names of its log lines."""

from __future__ import annotations

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

Event = Opened | Closed | Received | TurnEnded | Woke
Effect = Send | WakeAt | Exit | Note
