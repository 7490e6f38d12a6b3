"""Who has stopped answering: a tick every second, a ping every second tick."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentbus.supervisor.process import Process
from agentbus.supervisor.roster import Roster

TICK: Final = 1.0
TICKS_PER_PING: Final = 2
LATE: Final = 1.0
"""A tick that comes later than this tells that we were stopped or suspended ourselves: that time
is nobody's silence."""


class Liveness:
    """Times are monotonic seconds."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self.due = 0.0
        self.number = 0

    def start(self, now: float) -> None:
        """The first tick comes a second from now."""
        self.due = now + TICK

    @property
    def pings(self) -> bool:
        """Whether this tick is one of those that ask for an answer."""
        return self.number % TICKS_PER_PING == 0

    def tick(self, now: float) -> None:
        """One more; when it was due."""
        late = now - self.due
        if late > LATE:
            for process in self._roster:
                process.excuse(late)
        self.number += 1
        self.due = now + TICK

    def faulty(self, now: float) -> Iterator[tuple[Process, str]]:
        """Processes to be replaced, and why."""
        for process in self._roster:
            fault = process.fault(now) if process.serving else None
            if fault is not None:
                yield process, fault
