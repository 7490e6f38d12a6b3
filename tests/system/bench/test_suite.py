"""Every measurement of the suite works, at sizes that say nothing about speed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from math import isfinite

import msgspec
import pytest

from bench import __main__ as bench
from bench.accept import SETTINGS
from bench.bus import Bus
from bench.figures import at_least
from bench.recover import fill
from bench.report import Report, draw, markdown
from bench.runs import Plan
from bench.suite import MEASUREMENTS


@pytest.fixture
def plan() -> Iterator[Plan]:
    with tempfile.TemporaryDirectory(prefix="ab-", dir="/tmp") as base:
        yield Plan(
            base=base,
            say=lambda _progress: None,
            load_seconds=0.2,
            bare_seconds=0.02,
            warm_up=0.01,
            latency_seconds=0.1,
            repeats=1,
            starts=1,
            burst=200,
            sweep_seconds=0.05,
            attachments=(2,),
            in_flight=(3,),
            exchanges=10,
            handed_on=800,
            widths=(1, 2),
            reports=200,
            indexed=256,
            retained=300,
            restarted=300,
            searched=(300,),
            queries=5,
            filled=1_150,
            filled_bytes=60_000,
            grid_seconds=0.4,
            grid_repeats=1,
            grid_filled=0.02,
            grid_budgets=(64,),
            grid_free=(50,),
            grid_ages=((5, 1),),
            peer_runs=1,
            growth_seconds=0.1,
            sessions=(1, 3),
            channels=(1, 3),
            stored=(100, 300),
            sizes=(100, 1_000),
            idle_seconds=0.1,
            idle_sessions=2,
        )
        assert os.listdir(base) == []


OURS = [name for name in MEASUREMENTS if name != "peers"]
"""Other buses and brokers are not installed here."""


@pytest.mark.parametrize("name", OURS)
def test_a_measurement_comes_to_figures_and_leaves_nothing_behind(name, plan, tmp_path):
    said: list[str] = []
    figures = MEASUREMENTS[name](msgspec.structs.replace(plan, say=said.append))
    assert said
    assert all(isfinite(value) for row in figures for value in (row.low, row.value, row.high))
    assert all(row.low <= row.value <= row.high for row in figures)
    assert len({row.name for row in figures}) == len(figures)
    report = Report({}, {name: figures})
    assert all(path.read_text().startswith("<svg") for path in draw(report, tmp_path))
    assert markdown(report)


def test_what_has_no_room_is_not_filled_in_for_ever(plan):
    small = {**SETTINGS, "sqlite_budget_mib": 64}
    with Bus(plan.base, small) as bus, pytest.raises(RuntimeError, match=r"goes again|load failed"):
        fill(plan, bus, 1_300, 60_000)


def lost(plan: Plan) -> None:
    plan.say("at it")
    raise RuntimeError("Redis is gone")


@pytest.mark.parametrize(
    ("found", "code"), [({"lost": lost}, 1), ({}, 0)], ids=["one that fails", "all are met"]
)
def test_a_measurement_that_fails_takes_no_other_with_it(found, code, tmp_path, monkeypatch):
    fast = {"fast": lambda _plan: [at_least("fast", [2.0], "x", 1.0)]}
    monkeypatch.setattr(bench, "MEASUREMENTS", {**found, **fast})
    monkeypatch.setattr(bench, "expected", lambda names, quick: dict.fromkeys(names, 1.0))
    paths = {name: tmp_path / name for name in ("json", "markdown", "plots")}
    arguments = [f"--{name}={path}" for name, path in paths.items()]
    assert bench.main(["--quick", f"--directory={tempfile.gettempdir()}", *arguments]) == code
    report = msgspec.json.decode(paths["json"].read_bytes(), type=Report)
    assert list(report.figures) == ["fast"]
    assert list(report.failed) == list(found)
    assert paths["markdown"].read_text() == markdown(report)
    assert (paths["plots"] / "overview.svg").exists()
