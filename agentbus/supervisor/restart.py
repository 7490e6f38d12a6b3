"""When a process that died comes back, and when the supervisor gives up.

Deaths weigh 1, or 2 where the process had never been ready; when more than `TOLERATED` lies within
`WINDOW` the fault is not going away by itself. The first death is repaired at once; the next ones
in the window wait, doubling, so that a fault which lasts a second does not use up the patience.
"""

from __future__ import annotations

from collections import deque
from typing import Final

TOLERATED: Final = 5
WINDOW: Final = 60.0
FIRST_DELAY: Final = 0.1
LONGEST_DELAY: Final = 2.0


class Deaths:
    """The recent deaths of one process; times are monotonic seconds."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int]] = deque()

    def add(self, now: float, *, was_ready: bool) -> float | None:
        """Counts a death. Seconds until the successor may start; None to give up."""
        while self._recent and self._recent[0][0] <= now - WINDOW:
            self._recent.popleft()
        earlier = len(self._recent)
        self._recent.append((now, 1 if was_ready else 2))
        if sum(weight for _, weight in self._recent) > TOLERATED:
            return None
        return min(FIRST_DELAY * 2 ** (earlier - 1), LONGEST_DELAY) if earlier else 0.0
