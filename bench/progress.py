"""What a run is at, and how much of it is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final, TextIO

from bench.report import duration

EVERY_SECONDS: Final = 2.0
"""Between two lines of one measurement, where they stay."""


class Progress:
    """One line that is written over, on a terminal; elsewhere a line now and then.

    `expected` has all measurements in their order, and the seconds that each takes on a machine
    like the one that the figures in README.md are of. What is left is told by how much longer, or
    shorter, those took that are over.
    """

    def __init__(
        self,
        stream: TextIO,
        expected: Mapping[str, float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._expected = expected
        self._clock = clock
        self._began = self._part_began = clock()
        self._part = ""
        self._over: list[str] = []
        self._said = ("", -EVERY_SECONDS)

    def begin(self, part: str) -> None:
        """The measurement that all that follows is of; the one before is over."""
        if self._part:
            self._over.append(self._part)
        self._part, self._part_began = part, self._clock()

    def say(self, text: str) -> None:
        """Shows what is going on."""
        number, count = len(self._over) + 1, len(self._expected)
        gone = self._clock() - self._began
        line = f"{gone:4.0f} s, about {duration(self.left())} left"
        line += f"  [{number}/{count}] {self._part}:  {text}"
        if self._stream.isatty():
            self._stream.write(f"\r\x1b[K{line}")
        elif self._said[0] != self._part or self._clock() - self._said[1] >= EVERY_SECONDS:
            self._said = (self._part, self._clock())
            self._stream.write(f"{line}\n")
        self._stream.flush()

    def left(self) -> float:
        """Seconds, about."""
        pace = self._pace()
        later = sum(
            seconds
            for name, seconds in self._expected.items()
            if name not in self._over and name != self._part
        )
        here = self._expected[self._part] * pace - (self._clock() - self._part_began)
        return later * pace + max(0.0, here)

    def _pace(self) -> float:
        """How many times as long as expected those took that are over."""
        foreseen = sum(self._expected[name] for name in self._over)
        return (self._part_began - self._began) / foreseen if foreseen else 1.0

    def end(self) -> None:
        """Leaves the line."""
        if self._stream.isatty():
            self._stream.write("\r\x1b[K")
