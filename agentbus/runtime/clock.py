"""The only place where a clock is read."""

from __future__ import annotations

import os
import time

import msgspec

from agentbus.model.ports import Clock, Instant
from agentbus.runtime.testing import requested


class SystemClock:
    """The machine's clocks."""

    def now(self) -> Instant:
        """Both clocks, read now."""
        return Instant(time.monotonic(), time.time())  # noqa: TID251


class Shift(msgspec.Struct, frozen=True):
    """Seconds that a test adds to the clocks."""

    wall: float = 0.0
    monotonic: float = 0.0


class ShiftedClock:
    """The machine's clocks, shifted by what a file says at the moment."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._shift = Shift()

    def now(self) -> Instant:
        """Both clocks, read now. A file that is not there shifts nothing."""
        self._look()
        return Instant(
            time.monotonic() + self._shift.monotonic,
            time.time() + self._shift.wall,  # noqa: TID251
        )

    def _look(self) -> None:
        try:
            found = os.stat(self._path)
            seen = (found.st_mtime_ns, found.st_ino)
            if seen != self._seen:
                with open(self._path, "rb") as file:
                    self._shift = msgspec.json.decode(file.read(), type=Shift)
                self._seen = seen
        except FileNotFoundError:
            self._shift, self._seen = Shift(), None


def clock() -> Clock:
    """The clock of this process. Raises ConfigInvalid where a test asks for the impossible."""
    testing = requested()
    if testing is None or testing.clock_file is None:
        return SystemClock()
    return ShiftedClock(testing.clock_file)
