"""How fast messages are accepted, against the bare loop that only commits them."""

from __future__ import annotations

import itertools
import statistics
from typing import Any, Final

import psutil  # type: ignore[import-untyped]

from bench.bare import Bare
from bench.bus import Bus
from bench.figures import Figure, at_least, at_most, figure, percentile
from bench.load import Result, Spec
from bench.runs import Plan, run_load

SENDERS: Final = 8
IN_FLIGHT: Final = 32
CONTENT_BYTES: Final = 1024
BATCH: Final = 256
LEAST_RATIO: Final = 0.3
MOST_RATIO: Final = 1.6
MOST_MORE_MS: Final = 0.5
SETTINGS: Final[dict[str, Any]] = {
    "sqlite_synchronous": "full",
    "send_messages_per_second": 10000,
    "send_kib_per_second": 65536,
}


def throughput(plan: Plan) -> list[Figure]:
    """Eight attachments with 32 sends in flight each, and one subscriber that takes everything.

    The bare loop runs before, between and after; each repeat is compared with its neighbours.
    """
    bare = [_bare_rate(plan)]
    rates: list[float] = []
    shares: list[dict[str, float]] = []
    for repeat in range(plan.repeats):
        rate, share = _bus_rate(plan, f"throughput, run {repeat + 1} of {plan.repeats}")
        rates.append(rate)
        shares.append(share)
        bare.append(_bare_rate(plan))
    ratios = [
        rate / statistics.mean(pair)
        for rate, pair in zip(rates, itertools.pairwise(bare), strict=True)
    ]
    return [
        at_least("accepted, of the bare loop", ratios, "x", LEAST_RATIO),
        figure("accepted", rates, "messages/s"),
        figure(f"bare loop, batches of {BATCH}", bare, "messages/s"),
        *(
            figure(f"processor, {name}", [share.get(name, 0) for share in shares], "% of a core")
            for name in shares[0]
        ),
    ]


def latency(plan: Plan) -> list[Figure]:
    """One send in flight; the subscriber still takes everything."""
    bus: list[float] = []
    bare: list[float] = []
    slowest: list[float] = []
    for repeat in range(plan.repeats):
        bare.append(bare_latency(plan))
        samples = _bus_latencies(plan, f"latency, run {repeat + 1} of {plan.repeats}")
        bus.append(statistics.median(samples))
        slowest.append(percentile(samples, 99))
    bare.append(bare_latency(plan))
    base = statistics.median(bare)
    bound = max(base * MOST_RATIO, base + MOST_MORE_MS)
    target = f"at most {bound:.2f} ms: {MOST_RATIO} x or {MOST_MORE_MS} ms above the bare loop"
    return [
        at_most("accept, one in flight, median", bus, "ms", bound, target),
        figure("accept, one in flight, 99th percentile", slowest, "ms"),
        figure("bare loop, batches of 1, median", bare, "ms"),
        figure("accept, one in flight, of the bare loop", [ms / base for ms in bus], "x"),
    ]


def _bus_rate(plan: Plan, name: str) -> tuple[float, dict[str, float]]:
    with Bus(plan.base, SETTINGS) as bus:
        processes = [(item["name"], item["pid"]) for item in bus.status()["processes"]]
        before = _processor_seconds(processes)
        result = run_load(_spec(plan, bus, SENDERS, IN_FLIGHT), plan, name)
        after = _processor_seconds(processes)
    spent = result.seconds + plan.warm_up
    share = {name: (after[name] - before[name]) / spent * 100 for name in after}
    share["load"] = result.cpu_seconds / result.seconds * 100
    return result.accepted / result.seconds, share


def _processor_seconds(processes: list[tuple[str, int]]) -> dict[str, float]:
    """Processor time of each process of the daemon so far."""
    times = ((name, psutil.Process(pid).cpu_times()) for name, pid in processes)
    return {name: used.user + used.system for name, used in times}


def _bus_latencies(plan: Plan, name: str) -> list[float]:
    with Bus(plan.base, SETTINGS) as bus:
        result: Result = run_load(_spec(plan, bus, 1, 1, latencies=True), plan, name)
    return result.latencies_ms


def _spec(plan: Plan, bus: Bus, senders: int, in_flight: int, *, latencies: bool = False) -> Spec:
    return Spec(
        socket=bus.place.paths.socket,
        run="load",
        senders=senders,
        in_flight=in_flight,
        content_bytes=CONTENT_BYTES,
        warm_up=plan.warm_up,
        seconds=plan.load_seconds if not latencies else plan.bare_seconds,
        latencies=latencies,
    )


def _bare_rate(plan: Plan) -> float:
    plan.say(f"bare loop, batches of {BATCH}")
    with Bare(plan.base, CONTENT_BYTES, SENDERS) as bare:
        bare.run(BATCH, plan.warm_up)
        took = bare.run(BATCH, plan.bare_seconds)
    return len(took) * BATCH / sum(took)


def bare_latency(plan: Plan) -> float:
    """Milliseconds of a commit of one message, the median."""
    plan.say("bare loop, batches of 1")
    with Bare(plan.base, CONTENT_BYTES, SENDERS) as bare:
        bare.run(1, plan.warm_up)
        return statistics.median(bare.run(1, plan.bare_seconds)) * 1000
