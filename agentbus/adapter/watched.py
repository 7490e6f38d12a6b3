"""Descriptors that are waited for, by `poll`.

`selectors` looks each one up through mappings of its own, several times a turn, and fails by an
exception where it knows none: half of what an adapter did for a call beside its core.
"""

from __future__ import annotations

import math
import select


class Watched:
    """What is waited for at each descriptor: `POLLIN`, `POLLOUT`, or both."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._events: dict[int, int] = {}

    def watch(self, fd: int, events: int) -> None:
        """From now on for these; `events` 0: not at all, not even for its end."""
        if self._events.get(fd, 0) == events:
            return
        if events:
            self._poll.register(fd, events)
            self._events[fd] = events
        else:
            self._poll.unregister(fd)
            del self._events[fd]

    def forget(self, fd: int) -> None:
        """Before it is closed; nothing where it is not watched, or is none."""
        self.watch(fd, 0)

    def wait(self, timeout: float | None) -> list[int]:
        """The descriptors of which something can be read, written or learned, after at most so many
        seconds; None: for as long as it takes."""
        milliseconds = None if timeout is None else math.ceil(timeout * 1000)
        return [fd for fd, _ in self._poll.poll(milliseconds)]
