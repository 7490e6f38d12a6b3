"""One seed, one run: everything about it is drawn from the seed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import msgspec

from tests.support.simulation import knobs
from tests.support.simulation.scheduler import Scheduler
from tests.support.simulation.truth import Truth
from tests.support.simulation.world import World

ROUNDS: Final = 2


class Report(msgspec.Struct, frozen=True):
    """What a run was."""

    seed: int
    digest: str
    steps: int
    messages: int
    seconds: float
    """Virtual ones."""
    reached: dict[str, int]
    """How often what seldom happens did."""
    faults: dict[str, int]
    knobs: dict[str, Any]


class Spent:
    """What has been spent since it was made, by the clock and by this process."""

    def __init__(self) -> None:
        self._began = (time.monotonic(), time.process_time())

    @property
    def seconds(self) -> float:
        """By the clock."""
        return time.monotonic() - self._began[0]

    @property
    def cpu_seconds(self) -> float:
        """Of a core, by this process."""
        return time.process_time() - self._began[1]


class Failed(Exception):
    """A promise was broken, or a core failed; `trace` is what happened last."""

    def __init__(self, seed: int, error: BaseException, steps: int, trace: list[str]) -> None:
        super().__init__(seed)
        self.seed = seed
        self.error = error
        self.steps = steps
        self.trace = trace

    def __str__(self) -> str:
        kind = type(self.error).__name__
        return (
            f"seed {self.seed}, step {self.steps}: {kind}: {self.error}\n"
            f"replay: python -m tests.simulation --seed {self.seed} --trace"
        )


def run(seed: int, sink: Callable[[str], object] | None = None) -> Report:
    """A bus under faults, at rest, under faults, at rest. Raises Failed."""
    chance = Scheduler(seed).chance("run")
    with (
        knobs.turned(chance) as turned,
        World(seed, chance.choice((2, 3, 5)), knobs.settings(chance)) as world,
    ):
        world.scheduler.trace.sink = sink
        begun = world.scheduler.now
        try:
            world.start()
            for _ in range(ROUNDS):
                world.run(chance.uniform(0.5, 6), chance.choice((None, 0.2, 0.7, 2)))
                world.settle()
            world.stop()
        except Exception as error:
            scheduler = world.scheduler
            raise Failed(seed, error, scheduler.steps, list(scheduler.trace.last)) from error
        return Report(
            seed,
            world.scheduler.trace.digest(),
            world.scheduler.steps,
            len(world.truth.rows),
            world.scheduler.now - begun,
            reached(world.truth),
            world.faults.drawn,
            turned,
        )


def reached(truth: Truth) -> dict[str, int]:
    """What seldom happens, counted."""
    return {
        "evicted": truth.stored.evicted,
        "told as lost": truth.lost,
        "purged": truth.stored.purged,
        "receipts forgotten": truth.stored.forgotten,
        "cursors expired": truth.expired,
        "resets": truth.resets,
    }


def summary(reports: list[Report], spent: Spent) -> str:
    """One line."""
    steps = sum(report.steps for report in reports)
    seconds = spent.seconds
    faults: Counter[str] = sum((Counter(report.faults) for report in reports), Counter())
    seldom: Counter[str] = sum((Counter(report.reached) for report in reports), Counter())
    told = ", ".join(f"{count} {name}" for name, count in seldom.items())
    return (
        f"{len(reports)} seeds, {steps} steps, {steps / seconds:.0f} steps/s "
        f"({steps / spent.cpu_seconds:.0f} a CPU second), "
        f"{sum(report.messages for report in reports)} messages, {faults.total()} faults, "
        f"{sum(report.seconds for report in reports):.0f} virtual seconds in {seconds:.1f} s"
        f"{', ' if told else ''}{told}"
    )
