"""The states of a process that the supervisor keeps, and every way from one to another.

                 forked           settled
    absent ─────────────▶ starting ───────▶ ready
      ▲  ▲                  │    │            │
      │  │        condemned │    │ asked      │ asked, condemned
      │  │                  ▼    ▼            │
      │  │ reaped       condemned ◀── stopping ◀┘
      │  └──────────────────┴────────────┘
      └── from starting and ready too: a death nobody had asked for

A child settles by saying Ready, Redis by listening. Whether an absent process comes back, and
when, is for `restart` to say. A condemned one has been sent SIGKILL and has yet to be reaped.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from agentbus.errors import InternalError


class State(Enum):
    """What the supervisor knows of a process."""

    ABSENT = "absent"
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    CONDEMNED = "condemned"


TRANSITIONS: Final[dict[State, frozenset[State]]] = {
    State.ABSENT: frozenset({State.STARTING}),
    State.STARTING: frozenset({State.READY, State.STOPPING, State.CONDEMNED, State.ABSENT}),
    State.READY: frozenset({State.STOPPING, State.CONDEMNED, State.ABSENT}),
    State.STOPPING: frozenset({State.CONDEMNED, State.ABSENT}),
    State.CONDEMNED: frozenset({State.ABSENT}),
}

SERVING: Final = frozenset({State.STARTING, State.READY})
"""Takes messages and links."""

ENDING: Final = frozenset({State.STOPPING, State.CONDEMNED})
"""Has been told to go."""

ALIVE: Final = SERVING | ENDING
"""Has a pid that must be reaped."""


def moved(name: str, old: State, new: State) -> State:
    """`new`, where the table allows it. Raises InternalError otherwise."""
    if new not in TRANSITIONS[old]:
        raise InternalError(f"{name} cannot go from {old.value} to {new.value}")
    return new
