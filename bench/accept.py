"""How fast messages are accepted, against the bare loop that only commits them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import psutil  # type: ignore[import-untyped]

from bench.bare import Bare, Synchronous
from bench.bus import Bus
from bench.figures import (
    Chart,
    Figure,
    Point,
    at_least,
    at_most,
    figure,
    percentile,
    ratios,
)
from bench.load import Result, Spec
from bench.runs import Plan, run_load

SENDERS: Final = 8
IN_FLIGHT: Final = 32
CONTENT_BYTES: Final = 1024
BATCH: Final = 256
LEAST_SUSTAINED: Final = 0.4
LEAST_BURST: Final = 0.7
MOST_LATENCY: Final[dict[Synchronous, float]] = {"full": 1.3, "normal": 4.0}
SETTINGS: Final[dict[str, Any]] = {
    "sqlite_synchronous": "full",
    "send_messages_per_second": 10000,
    "send_kib_per_second": 65536,
}
"""Nothing is refused for its rate. The budgets are the usual ones: what is sustained is so beside a
cleanup."""


def throughput(plan: Plan) -> list[Figure]:
    """Eight attachments with 32 sends in flight each, and one subscriber that takes everything.

    The bare loop runs before, between and after; each repeat is compared with its neighbours.
    """
    bare = [bare_rate(plan)]
    rates: list[float] = []
    shares: list[dict[str, float]] = []
    for repeat in range(plan.repeats):
        rate, share = _bus_rate(plan, f"throughput, run {repeat + 1} of {plan.repeats}")
        rates.append(rate)
        shares.append(share)
        bare.append(bare_rate(plan))
    return [
        at_least(
            "accepted, sustained, of the bare loop",
            _between(rates, bare),
            "x",
            LEAST_SUSTAINED,
        ),
        figure("accepted, sustained", rates, "messages/s"),
        figure(f"bare loop, batches of {BATCH}", bare, "messages/s"),
        *(
            figure(f"processor, {name}", [share.get(name, 0) for share in shares], "% of a core")
            for name in shares[0]
        ),
    ]


def burst(plan: Plan) -> list[Figure]:
    """The same on a bus that has just started, for the first messages alone; what is accepted is
    delivered, projected and indexed meanwhile, or afterwards."""
    bare = [bare_rate(plan)]
    rates: list[float] = []
    for repeat in range(plan.repeats):
        name = f"burst, run {repeat + 1} of {plan.repeats}"
        with Bus(plan.base, SETTINGS) as bus:
            plain = spec(plan, bus.place.paths.socket, SENDERS, IN_FLIGHT)
            result = run_load(
                msgspec.structs.replace(plain, warm_up=0.0, seconds=60.0, messages=plan.burst),
                plan,
                name,
            )
        rates.append(result.accepted / result.seconds)
        bare.append(bare_rate(plan))
    return [
        at_least("accepted, in a burst, of the bare loop", _between(rates, bare), "x", LEAST_BURST),
        figure(f"accepted, a burst of {plan.burst}", rates, "messages/s"),
    ]


def latency(plan: Plan) -> list[Figure]:
    """One send in flight; the subscriber still takes everything."""
    return [row for synchronous in MOST_LATENCY for row in _latency(plan, synchronous)]


def _latency(plan: Plan, synchronous: Synchronous) -> list[Figure]:
    bus: list[float] = []
    slowest: list[float] = []
    bare = [bare_latency(plan, synchronous)]
    for repeat in range(plan.repeats):
        name = f"latency, {synchronous}, run {repeat + 1} of {plan.repeats}"
        samples = _bus_latencies(plan, synchronous, name)
        bus.append(statistics.median(samples))
        slowest.append(percentile(samples, 99))
        bare.append(bare_latency(plan, synchronous))
    name = f"accept, {synchronous}, one in flight"
    return [
        at_most(f"{name}, of the bare loop", _between(bus, bare), "x", MOST_LATENCY[synchronous]),
        figure(f"{name}, median", bus, "ms"),
        figure(f"{name}, 99th percentile", slowest, "ms"),
        figure(f"bare loop, {synchronous}, batches of 1, median", bare, "ms"),
    ]


def sweep(plan: Plan) -> list[Figure]:
    """From one attachment to many, from one send in flight to many; the bare loop runs before each
    of them, in a file of its own."""
    figures: list[Figure] = []
    for synchronous in MOST_LATENCY:
        with Bus(plan.base, {**SETTINGS, "sqlite_synchronous": synchronous}) as bus:
            figures += _sweep(plan, bus, synchronous)
    return figures


def _sweep(plan: Plan, bus: Bus, synchronous: Synchronous) -> Iterator[Figure]:
    share = Chart(f"accepted of the bare loop, {synchronous}", "in flight of each attachment")
    rate = Chart(f"accepted, {synchronous}", share.across)
    runs = 0
    for senders in plan.attachments:
        for in_flight in plan.in_flight:
            ours, theirs = [], []
            plan.say(f"{synchronous}, {senders} attachments with {in_flight} in flight")
            for _ in range(plan.repeats):
                runs += 1
                with Bare(plan.base, CONTENT_BYTES, SENDERS, synchronous) as bare:
                    theirs.append(bare.rate(BATCH, plan.sweep_seconds / 2))
                plain = spec(plan, bus.place.paths.socket, senders, in_flight)
                shorter = msgspec.structs.replace(
                    plain,
                    run=f"sweep{runs}",
                    warm_up=plan.sweep_seconds / 4,
                    seconds=plan.sweep_seconds,
                )
                result = run_load(shorter, plan, f"{synchronous}, {senders} x {in_flight}")
                ours.append(result.accepted / result.seconds)
            name = f"{synchronous}, {senders} x {in_flight}"
            line = f"{senders} attachments"
            yield figure(
                f"{name}, of bare", ratios(ours, theirs), "x", Point(share, line, in_flight)
            )
            yield figure(f"{name}, accepted", ours, "messages/s", Point(rate, line, in_flight))


def _between(ours: list[float], bare: list[float]) -> list[float]:
    """Each repeat against the mean of what the bare loop gave before and after it."""
    beside = [statistics.mean(bare[at : at + 2]) for at in range(len(ours))]
    return ratios(ours, beside)


def _bus_rate(plan: Plan, name: str) -> tuple[float, dict[str, float]]:
    with Bus(plan.base, SETTINGS) as bus:
        processes = [(item["name"], item["pid"]) for item in bus.status()["processes"]]
        before = _processor_seconds(processes)
        result = run_load(spec(plan, bus.place.paths.socket, SENDERS, IN_FLIGHT), plan, name)
        after = _processor_seconds(processes)
    spent = result.seconds + plan.warm_up
    share = {name: (after[name] - before[name]) / spent * 100 for name in after}
    share["load"] = result.cpu_seconds / result.seconds * 100
    return result.accepted / result.seconds, share


def _processor_seconds(processes: list[tuple[str, int]]) -> dict[str, float]:
    """Processor time of each process of the daemon so far."""
    times = ((name, psutil.Process(pid).cpu_times()) for name, pid in processes)
    return {name: used.user + used.system for name, used in times}


def _bus_latencies(plan: Plan, synchronous: Synchronous, name: str) -> list[float]:
    with Bus(plan.base, {**SETTINGS, "sqlite_synchronous": synchronous}) as bus:
        plain = spec(plan, bus.place.paths.socket, 1, 1)
        result: Result = run_load(
            msgspec.structs.replace(plain, latencies=True, seconds=plan.latency_seconds),
            plan,
            name,
        )
    return result.latencies_ms


def spec(plan: Plan, socket: str, senders: int, in_flight: int) -> Spec:
    """The load of 1 KiB messages, as long as throughput is measured."""
    return Spec(
        socket=socket,
        run="load",
        senders=senders,
        in_flight=in_flight,
        content_bytes=CONTENT_BYTES,
        warm_up=plan.warm_up,
        seconds=plan.load_seconds,
    )


def bare_rate(plan: Plan) -> float:
    """Messages a second that the bare loop commits in a file of its own."""
    plan.say(f"bare loop, batches of {BATCH}")
    with Bare(plan.base, CONTENT_BYTES, SENDERS) as bare:
        bare.run(BATCH, plan.warm_up)
        return bare.rate(BATCH, plan.bare_seconds)


def bare_latency(plan: Plan, synchronous: Synchronous = "full") -> float:
    """Milliseconds of a commit of one message, the median."""
    plan.say(f"bare loop, {synchronous}, batches of 1")
    with Bare(plan.base, CONTENT_BYTES, SENDERS, synchronous) as bare:
        bare.run(1, plan.warm_up)
        return statistics.median(bare.run(1, plan.bare_seconds)) * 1000
