"""The time of the event being handled, and many deadlines behind a core's one `WakeAt`."""

from __future__ import annotations

from math import inf

from agentbus.model.ports import Instant


class Alarms:
    """Named monotonic times. `next` is the earliest, infinite where there is none."""

    __slots__ = ("_times", "instant", "next", "now")

    def __init__(self) -> None:
        self.instant = Instant(0.0, 0.0)
        self.now = 0.0
        """Monotonic."""
        self.next = inf
        self._times: dict[str, float] = {}

    def set_time(self, instant: Instant) -> None:
        """The time of the event that is about to be handled."""
        self.instant = instant
        self.now = instant.monotonic

    def set(self, name: str, when: float | None) -> None:
        """Replaces the deadline of that name; None takes it away."""
        if when is None:
            self._times.pop(name, None)
        else:
            self._times[name] = when
        self.next = min(self._times.values(), default=inf)

    def ensure(self, name: str, seconds: float) -> None:
        """Sets one so far from now, where none of that name is set."""
        if name not in self._times:
            self.set(name, self.now + seconds)

    def has(self, name: str) -> bool:
        """Whether a deadline of that name is set."""
        return name in self._times

    def take_due(self) -> list[str]:
        """The names whose time has come, in the order they were set; they are no longer set."""
        due = [name for name, when in self._times.items() if when <= self.now]
        for name in due:
            del self._times[name]
        self.next = min(self._times.values(), default=inf)
        return due
