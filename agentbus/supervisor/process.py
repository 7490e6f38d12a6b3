"""One process as the supervisor's core knows it."""

from __future__ import annotations

from typing import Final

from agentbus.model.ports import Instant
from agentbus.runtime.platform import ProcessState
from agentbus.supervisor.restart import Deaths
from agentbus.supervisor.states import ALIVE, SERVING, State, moved
from agentbus.wire.error_codes import Failure
from agentbus.wire.links import ProcessInfo

HALTED_LIMIT: Final = 2.0
"""Seconds for which a process may be seen stopped (SIGSTOP) before it is replaced."""

SILENCE_LIMIT: Final = 30.0
"""Seconds without a heartbeat. Long, because one system call on a sick disk may take that."""


class Process:
    """What is kept of a process over all its incarnations; times are monotonic seconds."""

    def __init__(self, name: str, *, beats: bool = True) -> None:
        self.name = name
        self.state = State.ABSENT
        self.pid = 0
        self.socket_path = ""
        self.started_at = 0.0
        self.starts = 0
        self.deaths = Deaths()
        self.given_up = False
        """Died too often, and is not needed; until something makes it start again."""
        self.hindrance: Failure | None = None
        """What keeps it from its work, as it has said; until it is ready."""
        self.due: float | None = None
        """When to start it again."""
        self.deadline: float | None = None
        """When to kill it."""
        self._beats = beats
        self._heard = 0.0
        self._halted: float | None = None

    @property
    def serving(self) -> bool:
        """Takes messages and links."""
        return self.state in SERVING

    @property
    def alive(self) -> bool:
        """Has to be reaped still."""
        return self.state in ALIVE

    def info(self) -> ProcessInfo:
        """For `status`."""
        return ProcessInfo(self.name, self.pid, self.started_at, max(0, self.starts - 1))

    def forked(self, pid: int, socket_path: str, now: Instant) -> None:
        """A new incarnation."""
        self.state = moved(self.name, self.state, State.STARTING)
        self.pid, self.socket_path, self.started_at = pid, socket_path, now.wall
        self.starts += 1
        self.given_up = False
        self.due = self.deadline = self._halted = None
        self._heard = now.monotonic

    def move(self, state: State) -> None:
        """Changes the state, as far as the table allows it."""
        self.state = moved(self.name, self.state, state)

    def heard(self, now: float) -> None:
        """It said something."""
        self._heard = now

    def seen(self, state: ProcessState, now: float) -> None:
        """The kernel said something of it."""
        if state != "stopped":
            self._halted = None
        elif self._halted is None:
            self._halted = now

    def fault(self, now: float) -> str | None:
        """Why it should be replaced, if it should."""
        if self._halted is not None and now - self._halted >= HALTED_LIMIT:
            return "stopped"
        if self._beats and now - self._heard > SILENCE_LIMIT:
            return "silent"
        return None

    def excuse(self, seconds: float) -> None:
        """Does not count a time in which the supervisor itself did not run."""
        self._heard += seconds
        if self._halted is not None:
            self._halted += seconds
