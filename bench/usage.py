"""What processes take of the machine: processor time and memory."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor time of processes so far; to the nanosecond where Linux tells."""
    return sum(map(_cpu_seconds, pids))


def _cpu_seconds(pid: int) -> float:
    with suppress(OSError, ValueError):
        tasks = Path(f"/proc/{pid}/task").iterdir()
        spent = [int((task / "schedstat").read_text().split()[0]) for task in tasks]
        if any(spent):
            return sum(spent) / 1e9
    used = psutil.Process(pid).cpu_times()
    return float(used.user + used.system)


def shares_mib(pids: Iterable[int]) -> float:
    """Memory of processes, what several have in common counted once; resident memory where the
    system does not tell (all but Linux), which counts it for each."""
    return sum(map(_share, pids)) / 2**20


def _share(pid: int) -> float:
    memory = psutil.Process(pid).memory_full_info()
    return float(getattr(memory, "pss", memory.rss))


def of_daemon(status: dict[str, Any]) -> list[int]:
    """The processes of a daemon but Redis."""
    return [item["pid"] for item in status["processes"] if item["name"] != "redis"]


def everything(status: dict[str, Any]) -> list[int]:
    """The processes of a daemon, Redis among them."""
    return [item["pid"] for item in status["processes"]]
