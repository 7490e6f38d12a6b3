"""The projection's states.

    state         Redis                                   leads to
    ------------  --------------------------------------  ------------------------------------------
    WAITING       unknown: no writer has greeted, or no   CATCHING_UP once both are there
                  server is connected and found fit
    CATCHING_UP   holds a consistent past, or is being    READY · REBUILDING on any doubt
                  asked what it holds
    REBUILDING    cleared, and filled from nothing        READY · REBUILDING again on any doubt
    READY         equals the database                     CATCHING_UP where a commit was missed ·
                                                          REBUILDING on any doubt
    STOPPING      taking the last commits, its snapshot   the end

From everywhere but STOPPING a lost server, or an unreadable database, leads to WAITING.
The bus takes messages in READY only.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from agentbus.errors import InternalError


class State(Enum):
    """See the module's table."""

    WAITING = "waiting"
    CATCHING_UP = "catching up"
    REBUILDING = "rebuilding"
    READY = "ready"
    STOPPING = "stopping"


TRANSITIONS: Final[dict[State, frozenset[State]]] = {
    State.WAITING: frozenset({State.WAITING, State.CATCHING_UP}),
    State.CATCHING_UP: frozenset({State.WAITING, State.CATCHING_UP, State.REBUILDING, State.READY}),
    State.REBUILDING: frozenset({State.WAITING, State.CATCHING_UP, State.REBUILDING, State.READY}),
    State.READY: frozenset({State.WAITING, State.CATCHING_UP, State.REBUILDING, State.STOPPING}),
    State.STOPPING: frozenset(),
}

RECOVERING: Final = (State.CATCHING_UP, State.REBUILDING)
"""Redis is being made equal to the database."""

LIVE: Final = (State.READY, State.STOPPING)
"""Redis is, or but for commits on their way is, equal to the database."""


def check(old: State, new: State) -> None:
    """Raises InternalError where the table has no such transition."""
    if new not in TRANSITIONS[old]:
        raise InternalError(f"the projection cannot go from {old.value} to {new.value}")
