"""Virtual time and chance: what happens next is decided here, and by the seed alone."""

from __future__ import annotations

import hashlib
import heapq
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, Final

from agentbus.model.ports import Instant

MONOTONIC: Final = 1000.0
WALL: Final = 1_796_000_000.0
"""Where the two clocks stand at the beginning."""

SHOWN: Final = 200
"""Lines of the trace that are kept for whoever has to understand a failure."""


class Timer:
    """Something that is going to happen, unless it is cancelled."""

    __slots__ = ("action", "arguments", "cancelled")

    def __init__(self, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.action = action
        self.arguments = arguments
        self.cancelled = False


class Trace:
    """All that was said and done, as one hash: equal for equal runs. `hidden` is a text that
    differs from run to run (a temporary directory) and does not count."""

    def __init__(self, hidden: bytes = b"\0") -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._hidden = hidden
        self.last: deque[str] = deque(maxlen=SHOWN)
        self.sink: Callable[[str], object] | None = None

    def note(self, now: float, text: str) -> None:
        """Something was done."""
        line = f"{now - MONOTONIC:11.6f} {text}"
        self._hash.update(line.encode())
        self.last.append(line)
        if self.sink is not None:
            self.sink(line)

    def said(self, payload: Any) -> None:
        """Something was said: bytes, or anything whose text tells all of it."""
        data = payload if isinstance(payload, bytes | bytearray) else repr(payload).encode()
        if self._hidden in data:
            data = bytes(data).replace(self._hidden, b"*")
        self._hash.update(data)

    def digest(self) -> str:
        """So far."""
        return self._hash.copy().hexdigest()


class Scheduler:
    """One heap of timers. Whoever needs chance has a source of its own, by name, so that one
    more throw of the dice in one place changes nothing elsewhere."""

    def __init__(self, seed: int, hidden: bytes = b"\0") -> None:
        self.seed = seed
        self.now = MONOTONIC
        self.trace = Trace(hidden)
        self.steps = 0
        """Events that cores have handled."""
        self._wall = WALL - MONOTONIC
        self._set_at = -1e9
        self._leaps: list[tuple[float, float]] = []
        self._timers: list[tuple[float, int, Timer]] = []
        self._count = 0
        self._chances: dict[str, Random] = {}

    def chance(self, name: str) -> Random:
        """The dice of one concern."""
        chance = self._chances.get(name)
        if chance is None:
            chance = self._chances[name] = Random(f"{self.seed}/{name}")
        return chance

    def instant(self) -> Instant:
        """Both clocks."""
        return Instant(self.now, self.now + self._wall)

    def jump(self, seconds: float) -> None:
        """Somebody sets the machine's clock."""
        self._wall += seconds
        self._set_at = self.now
        self._leaps.append((self.now, max(0.0, seconds)))

    def leapt(self, seconds: float) -> float:
        """How far the wall clock was set ahead, in all, within the last so many seconds."""
        return sum(far for when, far in self._leaps if when >= self.now - seconds)

    def is_steady(self, seconds: float) -> bool:
        """Whether the clocks went as they should for so long."""
        return self.now - self._set_at >= seconds

    def leap(self, seconds: float) -> None:
        """Nothing happens for a while, anywhere: all that was due by then is late."""
        self.now += seconds

    def at(self, when: float, action: Callable[..., None], *arguments: Any) -> Timer:
        """Has something happen, after what was to happen at that time already."""
        timer = Timer(action, arguments)
        self._count += 1
        heapq.heappush(self._timers, (max(when, self.now), self._count, timer))
        return timer

    def after(self, seconds: float, action: Callable[..., None], *arguments: Any) -> Timer:
        """The same, so far from now."""
        return self.at(self.now + seconds, action, *arguments)

    def step(self) -> bool:
        """The next thing happens; False: nothing ever will."""
        while self._timers:
            when, _, timer = heapq.heappop(self._timers)
            if timer.cancelled:
                continue
            self.now = max(self.now, when)
            timer.action(*timer.arguments)
            return True
        return False

    def run_until(self, reached: Callable[[], bool], seconds: float) -> bool:
        """Goes on until something is so, at most so long; whether it is."""
        end = self.now + seconds
        while not reached():
            if not self._timers or self._timers[0][0] > end:
                self.now = max(self.now, end)
                return reached()
            self.step()
        return True

    def handled(self, who: str, event: object) -> None:
        """A core is about to handle an event."""
        self.steps += 1
        message = getattr(event, "message", None)
        what = type(event).__name__ if message is None else type(message).__name__
        self.trace.note(self.now, f"{who} {what}")
