"""Counts, rates and latencies for `status`: bounded, and cheap where messages pass."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from agentbus.gateway.alarms import Alarms

SAMPLES: Final = 1024
RATE_SECONDS: Final = 5
RECENT_SECONDS: Final = 60
"""How far back counts and durations are told second by second."""


class Recent:
    """Sums of the last minute, second by second; those in which nothing was added are not kept."""

    def __init__(self) -> None:
        self._sums: deque[tuple[int, float]] = deque(maxlen=RECENT_SECONDS + 1)

    def add(self, amount: float, now: float) -> None:
        """To the present second."""
        second = int(now)
        if self._sums and self._sums[-1][0] == second:
            self._sums[-1] = (second, self._sums[-1][1] + amount)
        else:
            self._sums.append((second, amount))

    def last(self, now: float, seconds: int) -> list[float]:
        """Of the last whole seconds, the oldest first."""
        sums = dict(self._sums)
        end = int(now)
        return [sums.get(second, 0) for second in range(end - seconds, end)]


class Reservoir:
    """The latest durations, and their means of late."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=SAMPLES)
        self._sums = Recent()
        self._counts = Recent()

    def add(self, seconds: Sequence[float], now: float) -> None:
        """More of them."""
        self._seconds.extend(seconds)
        self._sums.add(sum(seconds), now)
        self._counts.add(len(seconds), now)

    def recent_ms(self, now: float) -> list[float | None]:
        """Means of the last whole seconds, None for those without a sample."""
        sums = self._sums.last(now, RECENT_SECONDS)
        counts = self._counts.last(now, RECENT_SECONDS)
        pairs = zip(sums, counts, strict=True)
        return [round(total / count * 1000, 3) if count else None for total, count in pairs]

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
        self._recent = Recent()

    def add(self, count: int, now: float) -> None:
        """So many more."""
        self.total += count
        self._recent.add(count, now)

    def per_second(self, now: float) -> float:
        """Over the last whole seconds."""
        return round(sum(self._recent.last(now, RATE_SECONDS)) / RATE_SECONDS, 1)

    def recent(self, now: float) -> list[int]:
        """Of each of the last whole seconds, the oldest first."""
        return [int(count) for count in self._recent.last(now, RECENT_SECONDS)]


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
        self.accept.add([now - arrived for arrived in arrivals], now)
        self.accepted.add(len(arrivals), now)

    def sends_visible(self, arrivals: list[float]) -> None:
        """Sends that arrived at these times are visible now."""
        now = self._alarms.now
        self.visible.add([now - arrived for arrived in arrivals], now)

    def delivered(self, count: int) -> None:
        """Messages were handed off."""
        self.deliveries.add(count, self._alarms.now)
