"""Counts, rates and latencies for `status`: bounded, and cheap where messages pass."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from agentbus.gateway.alarms import Alarms

SAMPLES: Final = 1024
RATE_SECONDS: Final = 5


class Reservoir:
    """The latest durations."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=SAMPLES)

    def add(self, seconds: Iterable[float]) -> None:
        """More of them."""
        self._seconds.extend(seconds)

    def percentile_ms(self, percent: int) -> float | None:
        """In milliseconds; None where nothing was measured."""
        if not self._seconds:
            return None
        ordered = sorted(self._seconds)
        return round(ordered[(len(ordered) - 1) * percent // 100] * 1000, 3)


class Meter:
    """How many in all, and how many a second lately."""

    def __init__(self) -> None:
        self.total = 0
        self._seconds: deque[tuple[int, int]] = deque(maxlen=RATE_SECONDS + 1)

    def add(self, count: int, now: float) -> None:
        """So many more."""
        self.total += count
        second = int(now)
        if self._seconds and self._seconds[-1][0] == second:
            self._seconds[-1] = (second, self._seconds[-1][1] + count)
        else:
            self._seconds.append((second, count))

    def per_second(self, now: float) -> float:
        """Over the last whole seconds."""
        last = int(now)
        counted = sum(n for second, n in self._seconds if last - RATE_SECONDS <= second < last)
        return round(counted / RATE_SECONDS, 1)


class Metrics:
    """What this gateway has seen since it started."""

    def __init__(self, alarms: Alarms) -> None:
        self._alarms = alarms
        self.accept = Reservoir()
        self.visible = Reservoir()
        self.accepted = Meter()
        self.deliveries = Meter()

    def sends_accepted(self, arrivals: list[float]) -> None:
        """Sends that arrived at these times were accepted now."""
        now = self._alarms.now
        self.accept.add([now - arrived for arrived in arrivals])
        self.accepted.add(len(arrivals), now)

    def sends_visible(self, arrivals: list[float]) -> None:
        """Sends that arrived at these times are visible now."""
        now = self._alarms.now
        self.visible.add([now - arrived for arrived in arrivals])

    def delivered(self, count: int) -> None:
        """Messages were handed off."""
        self.deliveries.add(count, self._alarms.now)
