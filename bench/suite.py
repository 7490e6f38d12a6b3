"""All measurements, by the name that `--only` takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bench import (
    accept,
    acknowledge,
    cleanup,
    endtoend,
    fanout,
    find,
    growth,
    idle,
    index,
    recover,
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
    "recover": recover.recover,
    "restart": recover.restart,
    "peers": lambda plan: [*peers(plan), *brokers(plan)],
}
