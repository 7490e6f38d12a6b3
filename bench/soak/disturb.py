"""What is killed, and when."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from bench.soak.members import Session
from tests.support.daemon import Daemon

VICTIMS: Final = {
    "writer": 4,
    "projector": 4,
    "gateway": 4,
    "indexer": 4,
    "redis": 4,
    "adapter": 4,
    "supervisor": 1,
}
"""How often each is meant, one among the others."""


class Disturber:
    """`kills` counts by what was killed."""

    def __init__(self, bus: Daemon, sessions: Sequence[Session], seed: int) -> None:
        self._bus = bus
        self._sessions = sessions
        self._random = random.Random(f"{seed}/kills")
        self.kills: Counter[str] = Counter()

    def strike(self) -> str:
        """`kill -9` of one process that is chosen at random; its name."""
        (name,) = self._random.choices(list(VICTIMS), list(VICTIMS.values()))
        if name == "adapter":
            self._random.choice(self._sessions).kill()
        else:
            self._bus.wait_until(lambda status: name in _running(status))
            with suppress(ProcessLookupError):
                os.kill(self._bus.pid(name), signal.SIGKILL)
        self.kills[name] += 1
        return name


def _running(status: dict[str, object]) -> list[str]:
    processes = status.get("processes")
    return [item["name"] for item in processes] if isinstance(processes, list) else []
