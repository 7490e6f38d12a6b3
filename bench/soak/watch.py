"""Memory, file descriptors and files over time: what must not grow."""

from __future__ import annotations

import os
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

import msgspec
import psutil

GROWN_RATIO: Final = 1.25
GROWN_BYTES: Final = 8 * 1024 * 1024
GROWN_FILES: Final = 8
"""More than this above the second minute counts as growth; noise of the allocator is below."""


class Sample(msgspec.Struct, frozen=True):
    """Of one process at one time; `memory` is what is its own, in bytes."""

    at: float
    memory: int
    files: int


class Growth(msgspec.Struct, frozen=True):
    """Medians of the second minute and of the last one, of all processes of a name."""

    name: str
    memory: tuple[int, int]
    files: tuple[int, int]
    budget: int = 0
    """Bytes that it is there to fill; filling them is no growth."""

    @property
    def is_growth(self) -> bool:
        """Whether it is more than noise."""
        (before, after), (fewer, more) = self.memory, self.files
        most = max(before * GROWN_RATIO, before + GROWN_BYTES, self.budget)
        return after > most or more > fewer + GROWN_FILES


class Watch:
    """Samples by the name of the process; `directory` counts as one whose files are in it.
    `budgets` are the bytes that processes of a name are there to fill."""

    def __init__(self, directory: str, budgets: Mapping[str, int]) -> None:
        self._directory = directory
        self._budgets = budgets
        self._samples: dict[str, list[Sample]] = defaultdict(list)

    def look(self, at: float, processes: Mapping[str, Iterable[int]]) -> int:
        """Samples all of them; bytes of memory in all."""
        total = 0
        for name, pids in processes.items():
            for pid in pids:
                with suppress(psutil.Error, OSError):
                    process = psutil.Process(pid)
                    memory = process.memory_full_info().uss
                    self._samples[name].append(Sample(at, memory, process.num_fds()))
                    total += memory
        files = sum(len(names) for _, _, names in os.walk(self._directory))
        self._samples["files in the directories"].append(Sample(at, 0, files))
        return total

    def growth(self, ended: float) -> list[Growth]:
        """Of every name that was seen in both minutes."""
        found = []
        for name, samples in self._samples.items():
            early = [sample for sample in samples if 60 <= sample.at < 120]
            late = [sample for sample in samples if sample.at >= ended - 60]
            if early and late and ended >= 180:
                found.append(_growth(name, early, late, self._budgets.get(name, 0)))
        return found


def _growth(name: str, early: list[Sample], late: list[Sample], budget: int) -> Growth:
    def middle(samples: list[Sample], field: str) -> int:
        return int(statistics.median(getattr(sample, field) for sample in samples))

    return Growth(
        name,
        (middle(early, "memory"), middle(late, "memory")),
        (middle(early, "files"), middle(late, "files")),
        budget,
    )
