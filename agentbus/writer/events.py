"""What the writer's core is told, what it asks for, and the names of its log lines."""

from __future__ import annotations

from typing import Any

from agentbus.errors import DatabaseDamaged
from agentbus.runtime import exits
from agentbus.wire.error_codes import to_failure
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
from agentbus.wire.links import CONTROL, Failing

Event = Opened | Closed | Received | TurnEnded | Woke
Effect = Send | WakeAt | Exit | Note


def note(level: Any, action: str, error: Exception, **fields: Any) -> Note:
    """A line of the log about an error."""
    return Note(level, action, {"error": type(error).__name__, "text": str(error), **fields})


def last_words(error: DatabaseDamaged) -> list[Effect]:
    """It is said why, and the process ends."""
    return [
        note("error", "database_damaged", error),
        Send(CONTROL, Failing(to_failure(error))),
        Exit(exits.FAILING),
    ]
