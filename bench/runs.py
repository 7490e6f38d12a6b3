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


class Plan(msgspec.Struct, frozen=True):
    """How long and how often; `base` is the directory in which all files are made."""

    base: str
    load_seconds: float
    bare_seconds: float
    warm_up: float
    repeats: int
    starts: int
    say: Callable[[str], None]
    retained: int = 100_000
    """Messages that the bus holds while its processes are killed."""
    restarted: int = 500_000
    """Messages that it holds while it is started again."""


def quick(base: str, say: Callable[[str], None]) -> Plan:
    """Rough, in about a minute."""
    return Plan(
        base, 5.0, 2.0, 1.0, repeats=2, starts=7, say=say, retained=20_000, restarted=50_000
    )


def full(base: str, say: Callable[[str], None]) -> Plan:
    """What the figures in README.md were measured with; about six minutes."""
    return Plan(base, 30.0, 10.0, 2.0, repeats=3, starts=25, say=say)


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
