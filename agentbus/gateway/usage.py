"""Processor time and memory of the daemon's processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import psutil  # type: ignore[import-untyped]

from agentbus.gateway.events import Usage

SHORTEST_SECONDS: Final = 0.5
"""Two looks that are closer together say nothing: the older figure stands."""


class _Look:
    """What was seen of a process."""

    def __init__(self, at: float, busy: float, percent: float) -> None:
        self.at = at
        self.busy = busy
        self.percent = percent


class Usages:
    """Remembers the last look at each process; the first is the average since it started."""

    def __init__(self) -> None:
        self._looks: dict[tuple[int, float], _Look] = {}

    def measure(self, pids: Sequence[int], wall: float) -> dict[int, Usage]:
        """By pid; those that are gone are left out. `wall` is the wall-clock time."""
        usages: dict[int, Usage] = {}
        seen: dict[tuple[int, float], _Look] = {}
        for pid in pids:
            try:
                process = psutil.Process(pid)
                with process.oneshot():
                    started, times = process.create_time(), process.cpu_times()
                    rss = process.memory_info().rss
            except psutil.Error:
                continue
            look = self._look((pid, started), times.user + times.system, wall)
            seen[pid, started] = look
            usages[pid] = Usage(look.percent, rss)
        self._looks = seen
        return usages

    def _look(self, identity: tuple[int, float], busy: float, wall: float) -> _Look:
        last = self._looks.get(identity) or _Look(identity[1], 0.0, 0.0)
        elapsed = wall - last.at
        if elapsed < SHORTEST_SECONDS:
            return last
        percent = round(max(0.0, busy - last.busy) * 100 / elapsed, 1)
        return _Look(wall, busy, percent)
