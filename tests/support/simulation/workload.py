"""What all agents do: join the channels, and know which errors another try mends."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from tests.support.simulation.clients import Client, Result
from tests.support.simulation.scheduler import Scheduler
from tests.support.simulation.truth import require

CHANNELS: Final = ("general", "side/1", "memory")
"""The last is for memories; every bus has it."""

MEMORIES: Final = CHANNELS[-1]

PACES: Final = (0.1, 0.3, 1.0)
"""Seconds between two things that an agent does, about."""

PASSING: Final = frozenset(
    {
        "rate_limited",
        "storage_error",
        "recovering",
        "unavailable",
        "stale_attachment",
        "session_already_connected",
    }
)
"""Errors that faults around us explain, and that another try mends."""


FULL: Final = "capacity_exhausted"
"""Not mended by another try: memories and receipts take it all."""

GIVEN_UP: Final = "keeps dying"
"""What whoever had started the daemon is told, with `internal`, when faults come too fast."""


def code_of(result: Result, allowed: frozenset[str] = PASSING) -> str | None:
    """The error's code; None where it worked. Raises Violation at one that nothing explains."""
    if "error" not in result:
        return None
    error = result["error"]
    require(error["code"] in allowed or GIVEN_UP in error["message"], "refused", result)
    return str(error["code"])


def prepare(client: Client, scheduler: Scheduler, done: Callable[[], None]) -> None:
    """Creates the channels and subscribes to them, however many tries it takes."""
    steps = [
        ("create_channel", {"name": CHANNELS[1]}),
        *(("subscribe", {"channel": channel}) for channel in CHANNELS),
    ]
    chance: Random = scheduler.chance(f"prepare {client.name}")

    def go() -> None:
        if not steps:
            done()
        elif client.call(*steps[0], told) is None:
            scheduler.after(0.1, go)

    def told(result: Result | None) -> None:
        if result is not None and code_of(result) is None:
            del steps[0]
            go()
        else:
            scheduler.after(chance.uniform(0.05, 0.5), go)

    go()
