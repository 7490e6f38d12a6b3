"""What a message costs as everything grows: sessions, channels, what is stored, the message itself.

The cost is processor time of the daemon's processes, Redis and the indexer's share included, which
other programs on the machine disturb less than they do the time it takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from bench.accept import CONTENT_BYTES, IN_FLIGHT, SENDERS, SETTINGS, spec
from bench.bare import Bare
from bench.bus import Bus
from bench.figures import Chart, Figure, Point, at_most, exponent, figure, ratios
from bench.load import Connection, Spec
from bench.recover import LARGE, fill, settled
from bench.runs import Plan, run_load
from bench.usage import cpu_seconds, everything

LINEAR: Final = 1.0
BATCH: Final = 64

Cost = tuple[float, float]
"""Microseconds of processor time a message of the bus, and of the bare loop beside it."""


def growth(plan: Plan) -> list[Figure]:
    """Of each kind: cost of a message at each size, and how fast it grows; the bare loop commits
    the same message."""
    kinds: dict[str, tuple[Sequence[int], Callable[[Plan, Bus, int], Iterator[Cost]]]] = {
        "sessions": (plan.sessions, _sessions),
        "channels": (plan.channels, _channels),
        "bytes": (plan.sizes, _bytes),
    }
    figures: list[Figure] = []
    with Bus(plan.base, {**SETTINGS, **LARGE}) as bus:
        for name, (sizes, measured) in kinds.items():
            costs = {size: list(measured(plan, bus, size)) for size in sizes}
            figures += _figures(name, costs)
    costs, space = _stored(plan)
    return [*figures, *_figures("stored messages", costs), *space]


def _figures(name: str, costs: dict[int, list[Cost]]) -> Iterator[Figure]:
    cost = cost_chart(name)
    share = Chart(f"cost of a message of the bare loop by {name}", name)
    for size, found in costs.items():
        ours = [bus for bus, _ in found]
        theirs = [bare for _, bare in found]
        label = f"cost with {size} {name}"
        yield figure(label, ours, "us", Point(cost, "bus", size))
        yield figure(f"{label}, bare loop", theirs, "us", Point(cost, "bare loop", size))
        times = ratios(ours, theirs)
        yield figure(f"{label}, of the bare loop", times, "x", Point(share, "bus", size))
    turns = range(len(next(iter(costs.values()))))
    grows = [exponent([(size, found[turn][0]) for size, found in costs.items()]) for turn in turns]
    yield at_most(f"growth with {name}, exponent", grows, "", LINEAR, "at most linear: 1")


def cost_chart(kind: str) -> Chart:
    """Of what a message costs, over that kind."""
    return Chart(f"cost of a message by {kind}", kind)


def _sessions(plan: Plan, bus: Bus, count: int) -> Iterator[Cost]:
    """That are attached and have nothing to do with the channel."""
    idle = Spec(bus.place.paths.socket, "idle", 0, 0, 0, 0.0, 0.0)
    others = [Connection(idle, f"i{number}", ["elsewhere"]) for number in range(count)]
    yield from _costs(plan, bus, f"{count} sessions")
    for other in others:
        other.socket.close()


def _channels(plan: Plan, bus: Bus, count: int) -> Iterator[Cost]:
    """That messages go to in turn, and one session subscribes to."""
    yield from _costs(plan, bus, f"{count} channels", channels=count)


def _bytes(plan: Plan, bus: Bus, size: int) -> Iterator[Cost]:
    """Of the content."""
    yield from _costs(plan, bus, f"{size} bytes", content_bytes=size)


def _stored(plan: Plan) -> tuple[dict[int, list[Cost]], list[Figure]]:
    with Bus(plan.base, {**SETTINGS, **LARGE}) as bus:
        costs = {
            held: list(_costs(plan, bus, f"{held} stored"))
            for held in (fill(plan, bus, stored) for stored in plan.stored)
        }
        return costs, list(_space(bus))


def _space(bus: Bus) -> Iterator[Figure]:
    """Of all that is stored in the end, which is the same text again and again."""
    status = bus.status()
    held = status["totals"]["messages"]
    places = {
        "the database and its budget": status["budgets"]["sqlite"]["used"],
        "the budget of Redis and the index": status["budgets"]["redis"]["used"],
        "Redis": status["redis"]["dataset_bytes"],
        "the file of the index": sum(
            map(_size, Path(bus.place.paths.index).parent.glob("search.sqlite3*"))
        ),
    }
    for place, size in places.items():
        name = f"a stored message of {CONTENT_BYTES} bytes in {place}"
        yield figure(f"{name}, of the content", [size / held / CONTENT_BYTES], "x")
        yield figure(name, [size / held], "bytes")


def _size(path: Path) -> int:
    return path.stat().st_size


def _costs(
    plan: Plan,
    bus: Bus,
    name: str,
    *,
    channels: int = 1,
    content_bytes: int = CONTENT_BYTES,
) -> Iterator[Cost]:
    for repeat in range(plan.repeats):
        plan.say(f"{name}, run {repeat + 1} of {plan.repeats}")
        bare = _bare_cost(plan, content_bytes)
        plain = spec(plan, bus.place.paths.socket, SENDERS, IN_FLIGHT)
        load = msgspec.structs.replace(
            plain,
            run=f"growth-{name}-{repeat}".replace(" ", "-"),
            warm_up=0.0,
            seconds=plan.growth_seconds,
            content_bytes=content_bytes,
            channels=channels,
        )
        processes = everything(bus.status())
        before = cpu_seconds(processes)
        sent = run_load(load, plan, name).sent
        settled(bus)
        yield (cpu_seconds(processes) - before) / sent * 1e6, bare


def _bare_cost(plan: Plan, content_bytes: int) -> float:
    with Bare(plan.base, content_bytes, SENDERS) as bare:
        spent = 0.0
        count = 0
        ends = time.perf_counter() + plan.growth_seconds / 2
        while time.perf_counter() < ends or not count:
            spent += bare.cost(BATCH)
            count += BATCH
    return spent / count * 1e6
