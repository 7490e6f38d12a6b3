"""Ours against each of the others: absolute figures of all, and the ratio to the best of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from bench.figures import Figure, at_least, figure
from bench.peers.measure import Load, Result, measure
from bench.peers.ours import Ours
from bench.peers.peer import Peer
from bench.peers.table import OTHERS
from bench.runs import Plan

QUICK: Final = Load(seconds=2, sends=200, rows=1_000, searches=20)
FULL: Final = Load(seconds=4, sends=500, rows=5_000, searches=100)


class Metric(msgspec.Struct, frozen=True):
    """`ahead` is whether ours has to be better than all others, or is only shown beside them."""

    title: str
    unit: str
    of: Callable[[Result], float | None]
    more_is_better: bool = False
    ahead: bool = True


METRICS: Final = [
    Metric("send, median", "ms", lambda result: result.send),
    Metric("send, 99th percentile", "ms", lambda result: result.send_99),
    Metric("accepted of 4 senders", "messages/s", lambda result: result.rate, more_is_better=True),
    Metric("read 100", "ms", lambda result: result.read),
    Metric("search", "ms", lambda result: result.search),
    Metric("adapter, resident", "MiB", lambda result: result.resident),
    Metric("cold start to first call", "ms", lambda result: result.cold, ahead=False),
    Metric("second adapter to first call", "ms", lambda result: result.second, ahead=False),
    Metric("tools/list", "KiB", lambda result: result.listed, ahead=False),
    Metric("refused of 4 senders", "%", lambda result: result.refused, ahead=False),
]


def programs() -> str:
    """Where `python -m bench.peers DIR` put the others."""
    return os.environ.get("AGENTBUS_BENCH_PEERS", "")


def peers(plan: Plan) -> list[Figure]:
    """All in turn, ours first; what is not installed is said."""
    load = QUICK if plan.peer_runs < 3 else FULL
    there = [Ours, *(kind for kind in OTHERS if programs() and not kind.missing(programs()))]
    absent = [kind.name for kind in OTHERS if kind not in there]
    results: dict[str, list[Result]] = {}
    for repeat in range(plan.peer_runs):
        for kind in there:
            plan.say(f"peers, run {repeat + 1} of {plan.peer_runs}: {kind.name}")
            result = _measured(plan, kind, load)
            if result is not None:
                results.setdefault(kind.name, []).append(result)
    broken = [kind.name for kind in there if kind.name not in results]
    return [_coverage(results, absent, broken), *_figures(results)]


def _measured(plan: Plan, kind: type[Peer], load: Load) -> Result | None:
    """None where a bus of others failed; ours may not."""
    try:
        return measure(kind, plan.base, programs(), load)
    except Exception as error:
        if kind is Ours:
            raise
        sys.stderr.write(f"\n{kind.name} left out: {type(error).__name__}: {error}\n")
        return None


def _coverage(
    results: Mapping[str, object], absent: Sequence[str], broken: Sequence[str]
) -> Figure:
    name = "peers measured"
    if absent:
        name += f"; not installed: {', '.join(absent)}"
    if broken:
        name += f"; failed: {', '.join(broken)}"
    return figure(name, [len(results) - 1], f"of {len(OTHERS)}")


def _figures(results: Mapping[str, Sequence[Result]]) -> list[Figure]:
    rows: list[Figure] = []
    for metric in METRICS:
        samples = {
            name: [value for result in found if (value := metric.of(result)) is not None]
            for name, found in results.items()
        }
        rows += _rows(metric, {name: values for name, values in samples.items() if values})
    return rows


def _rows(metric: Metric, samples: Mapping[str, Sequence[float]]) -> list[Figure]:
    """Each bus, and how far ahead ours is of the best of the others: above 1 is ahead.

    The ratio is that of the medians; its range is that of our runs.
    """
    rows = [
        figure(f"{metric.title}: {name}", values, metric.unit) for name, values in samples.items()
    ]
    others = {row.name: row.value for row in rows[1:]}
    if others and metric.ahead:
        best = (max if metric.more_is_better else min)(others.values())
        ours = samples[Ours.name]
        ahead = [value / best if metric.more_is_better else best / value for value in ours]
        middle = rows[0].value / best if metric.more_is_better else best / rows[0].value
        row = at_least(f"{metric.title}: ahead of the best other", ahead, "x", 1.0)
        rows.append(msgspec.structs.replace(row, value=middle, meets=middle >= 1.0))
    return rows
