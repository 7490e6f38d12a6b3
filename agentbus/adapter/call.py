"""One tool call under way."""

from __future__ import annotations

from typing import Final

import msgspec

from agentbus.adapter.operations import Operation
from agentbus.adapter.session import Session
from agentbus.errors import AgentbusError

FIRST_PAUSE: Final = 0.05
"""Seconds before the second try of what could not be done; each pause is twice the one before."""


class Receive(msgspec.Struct, frozen=True):
    """A recv's wishes: entries, bytes, and until when it waits for a first message."""

    limit: int
    ceiling: int
    until: float


class Who(msgspec.Struct, frozen=True):
    """A `whoami`."""


Wish = Operation | Receive | Who


class Call(msgspec.Struct, eq=False):
    """A call that was not answered.

    `request` is the daemon's number of the try under way; `problem` is why the last one failed.
    """

    number: int
    session: Session
    wish: Wish
    deadline: float
    request: int | None = None
    asked: bool = False
    """Whether a daemon may know of it."""

    alone: bool = False
    """A change that was refused once, or had to wait for such a one: those behind it wait for its
    answer, which may be a refusal again."""

    attachment: str | None = None
    retry_at: float = 0.0
    pause: float = FIRST_PAUSE
    problem: AgentbusError | None = None
    reopened: bool = False
    """A recv whose answer was taken back."""

    synced: bool = False
    """A recv whose time is over knows that nothing is on its way."""

    target: int | None = None
    """The commit that has to be visible for that, if it is by `sync_by`."""

    sync_by: float = 0.0
