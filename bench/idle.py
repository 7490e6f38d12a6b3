"""What it costs that everything is there and nothing happens: adapters and the daemon at rest."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Final

import psutil  # type: ignore[import-untyped]

from bench.bus import Bus
from bench.figures import Figure, at_most, figure
from bench.runs import Plan
from bench.start import Adapter
from bench.usage import cpu_seconds, everything, of_daemon, shares_mib

MOST_ADAPTERS: Final = 1.0
"""Percent of a core, of all sessions together."""

MOST_DAEMON: Final = 0.5
MOST_MIB: Final = 120.0
SETTLED_SECONDS: Final = 1.0
FLOOR: Final = [sys.executable, "-c", "import msgspec, sys; print(flush=True); sys.stdin.read()"]


def at_rest(plan: Plan) -> list[Figure]:
    """Sessions that have called once and say nothing since. The floor is as many processes that
    have imported msgspec and wait for their stdin, beside them."""
    adapters_mib, adapters, daemon, redis, daemon_mib = [], [], [], [], []
    floor_mib, floor = [], []
    with Bus(plan.base, {}) as bus:
        plan.say("sessions begin")
        sessions = [_session(bus) for _ in range(plan.idle_sessions)]
        bare = [_floor() for _ in range(plan.idle_sessions)]
        _settle(plan)
        status = bus.status()
        own, all_of_it = of_daemon(status), everything(status)
        server = [pid for pid in all_of_it if pid not in own]
        groups = ([each.pid for each in sessions], own, server, [each.pid for each in bare])
        for repeat in range(plan.repeats):
            plan.say(f"{plan.idle_seconds:.0f} s at rest, {repeat + 1} of {plan.repeats}")
            shares = _percent(plan, groups)
            for samples, share in zip((adapters, daemon, redis, floor), shares, strict=True):
                samples.append(share)
            daemon_mib.append(shares_mib(own))
            adapters_mib.append(_resident(groups[0]))
            floor_mib.append(_resident(groups[3]))
        for session in sessions:
            session.end()
        for process in bare:
            process.communicate()
    many = f"{plan.idle_sessions} idle sessions"
    return [
        at_most(f"processor, adapters of {many}", adapters, "% of a core", MOST_ADAPTERS),
        at_most(f"processor, daemon with {many}", daemon, "% of a core", MOST_DAEMON),
        at_most("memory of the daemon (PSS)", daemon_mib, "MiB", MOST_MIB),
        figure(f"processor, Redis with {many}", redis, "% of a core"),
        figure("processor, floor: as many that only wait", floor, "% of a core"),
        figure("resident, adapter at rest", adapters_mib, "MiB"),
        figure("resident, floor: import msgspec", floor_mib, "MiB"),
    ]


def _session(bus: Bus) -> Adapter:
    adapter = Adapter(bus.place)
    adapter.call("whoami")
    return adapter


def _floor() -> subprocess.Popen[bytes]:
    process = subprocess.Popen(FLOOR, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def _settle(plan: Plan) -> None:
    """What beginning had left to do is not rest."""
    time.sleep(min(SETTLED_SECONDS, plan.idle_seconds))


def _percent(plan: Plan, groups: tuple[list[int], ...]) -> list[float]:
    began = time.monotonic()
    before = [cpu_seconds(group) for group in groups]
    time.sleep(plan.idle_seconds)
    after = [cpu_seconds(group) for group in groups]
    took = time.monotonic() - began
    return [(end - start) / took * 100 for start, end in zip(before, after, strict=True)]


def _resident(pids: list[int]) -> float:
    sizes = [float(psutil.Process(pid).memory_info().rss) for pid in pids]
    return sum(sizes) / len(sizes) / 2**20
