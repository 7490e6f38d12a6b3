"""What every measurement is given, and how it starts the load."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench.load import Result, Spec

ROOT = Path(__file__).resolve().parent.parent


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How long and how often; `base` is the directory in which all files are made. Times are in
    seconds, and what is not said otherwise is a number of messages."""

    base: str
    say: Callable[[str], None]
    load_seconds: float = 60.0
    bare_seconds: float = 6.0
    warm_up: float = 2.0
    latency_seconds: float = 8.0
    repeats: int = 3
    starts: int = 25
    """Adapters that are started."""

    burst: int = 10_000
    sweep_seconds: float = 1.0
    attachments: tuple[int, ...] = (1, 4, 16, 64)
    in_flight: tuple[int, ...] = (1, 4, 16, 64)
    exchanges: int = 1_000
    """From one adapter to another."""

    handed_on: int = 400_000
    """Messages times subscribers of one fan-out."""

    widths: tuple[int, ...] = (1, 10, 50, 100)
    reports: int = 40_000
    """Of what was handed off."""

    indexed: int = 8_192
    retained: int = 100_000
    """Messages that the bus holds while its processes are killed."""

    restarted: int = 500_000
    """Messages that it holds while it is started again."""

    searched: tuple[int, ...] = (10_000, 100_000, 500_000)
    queries: int = 300
    filled: int = 500_000
    filled_bytes: int = 1_024
    """What fills the budget before a cleanup: so many messages of so many bytes."""

    idle_seconds: float = 30.0
    idle_sessions: int = 20
    growth_seconds: float = 2.0
    sessions: tuple[int, ...] = (1, 16, 256)
    channels: tuple[int, ...] = (1, 16, 256)
    stored: tuple[int, ...] = (10_000, 100_000, 500_000)
    sizes: tuple[int, ...] = (256, 1_024, 8_192, 60_000)
    """Bytes of a message's content."""

    grid_seconds: float = 6.0
    grid_repeats: int = 2
    grid_filled: float = 0.2
    """Of the budget, before the measured time begins."""

    grid_budgets: tuple[int, ...] = (64, 768)
    """MiB: one that is full within a second or two, and one that lasts as long as is measured."""

    grid_free: tuple[int, ...] = (10, 25, 50)
    """Percent."""

    grid_ages: tuple[tuple[int, int], ...] = ((5, 1), (60, 1), (60, 168))
    """Seconds between two looks at age, and hours that messages are kept; where these are many,
    nothing grows too old, and how often is looked makes no difference."""

    peer_runs: int = 3


def full(base: str, say: Callable[[str], None]) -> Plan:
    """What the figures in README.md are measured with; three quarters of an hour."""
    return Plan(base=base, say=say)


def quick(base: str, say: Callable[[str], None]) -> Plan:
    """Rough, everything in about two minutes on an idle machine."""
    return Plan(
        base=base,
        say=say,
        load_seconds=1.5,
        bare_seconds=0.3,
        warm_up=0.2,
        latency_seconds=0.5,
        repeats=2,
        starts=5,
        sweep_seconds=0.2,
        attachments=(1, 64),
        in_flight=(1, 32),
        exchanges=100,
        handed_on=60_000,
        widths=(1, 50),
        reports=4_000,
        indexed=2_048,
        retained=2_000,
        restarted=10_000,
        searched=(2_000, 8_000),
        queries=40,
        filled=6_000,
        filled_bytes=16_384,
        idle_seconds=1.5,
        growth_seconds=0.25,
        sessions=(1, 32),
        channels=(1, 32),
        stored=(1_000, 8_000),
        sizes=(256, 8_192),
        grid_seconds=1.0,
        grid_repeats=1,
        grid_filled=0.3,
        grid_budgets=(64,),
        grid_free=(10, 50),
        grid_ages=((5, 168),),
        peer_runs=1,
    )


def run_load(spec: Spec, plan: Plan, name: str) -> Result:
    """The load in a process of its own, its rates shown while it runs."""
    command = [sys.executable, "-m", "bench.load", msgspec.json.encode(spec).decode()]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        began = time.monotonic()
        line = b""
        for line in process.stdout:
            if line.strip().isdigit():
                plan.say(f"{name}: {time.monotonic() - began:3.0f} s, {int(line)} accepted/s")
    if process.returncode != 0:
        raise RuntimeError("the load failed; what it said is above")
    return msgspec.json.decode(line, type=Result)
