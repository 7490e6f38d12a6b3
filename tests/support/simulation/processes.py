"""Processes: they act one thing at a time, can be halted, and can be killed at any step.

A killed process does nothing more, from one moment to the next. Because most of what a process
does becomes true by being written, `doom` has it die in the middle of one of its next writes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from tests.support.simulation.pipes import End, Pipe
from tests.support.simulation.scheduler import Scheduler

KILLED: Final = -9

OnDeath = Callable[["Process", int], None]


class Killed(BaseException):
    """Unwinds a process that has just died. No core catches it."""


class Process:
    """Something with a pid. `on_death` is called once, with the exit status."""

    def __init__(self, scheduler: Scheduler, name: str, pid: int) -> None:
        self.scheduler = scheduler
        self.name = name
        self.pid = pid
        self.alive = True
        self.stopped = False
        """As the kernel tells: halted by SIGSTOP."""
        self.on_death: list[OnDeath] = []
        self._halted_until = 0.0
        self._waiting: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._writes_left: int | None = None

    @property
    def label(self) -> str:
        """For traces."""
        return f"{self.name}[{self.pid}]"

    # ---- acting

    def post(self, action: Callable[..., None], *arguments: Any) -> None:
        """Has the process do something, as soon as it can."""
        if not self.alive:
            return
        if self._halted_until > self.scheduler.now or self._waiting:
            self._waiting.append((action, arguments))
            return
        self._act(action, arguments)

    def later(self, seconds: float, action: Callable[..., None], *arguments: Any) -> None:
        """The same, so far from now."""
        self.scheduler.after(seconds, self.post, action, *arguments)

    def _act(self, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        try:
            action(*arguments)
        except Killed:
            self.end(KILLED)

    def write(self, pipe: Pipe, payload: Any, right: End | None = None) -> None:
        """The way of everything that leaves the process."""
        if self._writes_left is None:
            pipe.write(payload, right)
            return
        if self._writes_left > 0:
            self._writes_left -= 1
            pipe.write(payload, right)
            return
        cut = self.scheduler.chance("doom").randrange(len(payload) + 1)
        if cut:
            pipe.write(payload[:cut], right)
        elif right is not None:
            right.close()
        raise Killed

    # ---- faults

    def kill(self) -> None:
        """SIGKILL."""
        if self.alive:
            self.scheduler.trace.note(self.scheduler.now, f"KILL {self.label}")
            self.end(KILLED)

    def doom(self, writes: int) -> None:
        """It dies in the middle of a write, after so many others."""
        if self.alive:
            self.scheduler.trace.note(self.scheduler.now, f"DOOM {self.label} {writes}")
            self._writes_left = writes

    def reprieve(self) -> None:
        """It is doomed no more, and halted no longer."""
        self._writes_left = None
        self._halted_until = min(self._halted_until, self.scheduler.now)
        self._resume()

    def halt(self, seconds: float, *, stopped: bool = False) -> None:
        """It does nothing for a while: by SIGSTOP, or because the machine is busy otherwise."""
        if self.alive and self._halted_until <= self.scheduler.now:
            self.scheduler.trace.note(self.scheduler.now, f"HALT {self.label} {seconds:.3f}")
            self._halted_until = self.scheduler.now + seconds
            self.stopped = stopped
            self.scheduler.after(seconds, self._resume)

    def _resume(self) -> None:
        self.stopped = False
        while self._waiting and self.alive and self._halted_until <= self.scheduler.now:
            action, arguments = self._waiting.popleft()
            self._act(action, arguments)

    def end(self, status: int) -> None:
        """It is no more; what belonged to it is closed."""
        if not self.alive:
            return
        self.alive = False
        for _, arguments in self._waiting:
            for each in arguments:
                if isinstance(each, End):  # it had been handed, and was not looked at yet
                    each.close()
        self._waiting.clear()
        self.scheduler.trace.note(self.scheduler.now, f"END {self.label} {status}")
        self.died()
        for tell in self.on_death:
            tell(self, status)

    def died(self) -> None:
        """Closes what belonged to it."""
