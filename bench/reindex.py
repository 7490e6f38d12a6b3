"""How soon a lost text index is whole again, against bare FTS5 that is given the same terms."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from bench.bus import Bus
from bench.figures import Figure, at_least, figure, ratios
from bench.find import bare_table, fill_table
from bench.recover import LARGE, fill, is_whole, started
from bench.runs import Plan

LEAST_RATIO: Final = 0.5


def reindex(plan: Plan) -> list[Figure]:
    """The daemon is started without its index beside `plan.retained` messages; what an ordinary
    start takes is left out. The bare table is filled from the same database while none runs."""
    bus = Bus(plan.base, LARGE)
    with bus:
        count = fill(plan, bus, plan.retained, varied=True)
        own = bus.status()["index"] is not None
        bus.keep()
    if not own:  # Redis has a query engine
        bus.place.remove()
        return []
    plain, anew, bare = [], [], []
    for repeat in range(plan.repeats):
        plan.say(f"run {repeat + 1} of {plan.repeats}")
        bare.append(count / _bare(plan, bus.place.paths.database))
        plain.append(started(bus, _is_indexed))
        _remove(bus.place.paths.index)
        anew.append(started(bus, _is_indexed))
    bus.place.remove()
    rates = [count / max(late - soon, 1e-3) for late, soon in zip(anew, plain, strict=True)]
    return [
        at_least("index made anew, of bare FTS5", ratios(rates, bare), "x", LEAST_RATIO),
        figure("index made anew", rates, "messages/s"),
        figure("bare FTS5, the same terms", bare, "messages/s"),
        figure("started without an index, until it is whole", anew, "s"),
        figure("started with the index, until all is whole", plain, "s"),
    ]


def _is_indexed(status: dict[str, Any]) -> bool:
    """The index is not told of before it is opened."""
    return status["index"] is not None and is_whole(status)


def _bare(plan: Plan, database: str) -> float:
    """Seconds."""
    with (
        tempfile.TemporaryDirectory(prefix="ab-bare-", dir=plan.base) as directory,
        closing(bare_table(os.path.join(directory, "bare"), database)) as table,
    ):
        began = time.perf_counter()
        fill_table(plan, table)
        return time.perf_counter() - began


def _remove(index: str) -> None:
    for path in Path(index).parent.glob(f"{Path(index).name}*"):
        path.unlink()
