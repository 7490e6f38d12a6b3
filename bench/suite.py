"""All measurements, by the name that `--only` takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from bench import (
    accept,
    acknowledge,
    cleanup,
    endtoend,
    fanout,
    find,
    growth,
    hops,
    idle,
    index,
    recover,
    reindex,
    start,
    tuning,
)
from bench.figures import Figure
from bench.peers.brokers import brokers
from bench.peers.compare import peers
from bench.runs import Plan

MEASUREMENTS: Final[dict[str, Callable[[Plan], list[Figure]]]] = {
    "throughput": accept.throughput,
    "burst": accept.burst,
    "latency": accept.latency,
    "sweep": accept.sweep,
    "end-to-end": endtoend.end_to_end,
    "fan-out": fanout.fan_out,
    "acknowledgments": acknowledge.acknowledgments,
    "adapter": start.warm,
    "cold": start.cold,
    "at-rest": idle.at_rest,
    "search": find.search,
    "cleanup": cleanup.cleanup,
    "tuning": tuning.tuning,
    "growth": growth.growth,
    "index": index.index,
    "reindex": reindex.reindex,
    "recover": recover.recover,
    "restart": recover.restart,
    "hops": hops.hops,
    "peers": lambda plan: [*peers(plan), *brokers(plan)],
}

EXPECTED: Final[dict[str, tuple[float, float]]] = {
    "throughput": (230, 6.5),
    "burst": (40, 4),
    "latency": (135, 8),
    "sweep": (260, 12),
    "end-to-end": (50, 3),
    "fan-out": (60, 4.5),
    "acknowledgments": (55, 4),
    "adapter": (5, 1),
    "cold": (4, 3),
    "at-rest": (100, 7),
    "search": (100, 3.5),
    "cleanup": (120, 6.5),
    "tuning": (540, 10),
    "growth": (240, 14),
    "index": (5, 0.5),
    "reindex": (60, 3),
    "recover": (60, 3),
    "restart": (100, 4.5),
    "hops": (75, 7),
    "peers": (470, 80),
}
"""Seconds of each on two cores, in full and with `--quick`; only to tell how much time is left."""


def expected(names: Sequence[str], *, quick: bool) -> dict[str, float]:
    """Of those measurements, in that order."""
    return {name: EXPECTED[name][quick] for name in names}
