"""How soon the bus is whole again: after each of its processes was killed, and after a restart,
with what Redis had kept and from nothing."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from typing import Any, Final

import psutil  # type: ignore[import-untyped]

from agentbus.mirror import keys
from bench.accept import CONTENT_BYTES, IN_FLIGHT, SENDERS, SETTINGS
from bench.bus import Bus
from bench.figures import Figure, at_least, at_most, figure, ratios
from bench.load import Spec
from bench.redis import Redis, server, socket_of
from bench.runs import Plan, run_load

PROCESSES: Final = ("writer", "projector", "gateway", "indexer")
MOST_SECONDS: Final = 1.0
LEAST_OF_NOTHING: Final = 3.0
LEAST_OF_REBUILD: Final = 5.0
LEAST_RATE: Final = 0.5
PIPELINE: Final = 256
BOUND_SECONDS: Final = 180.0
ENOUGH: Final = 50_000
LARGE: Final = {**SETTINGS, "sqlite_budget_mib": 8192, "redis_budget_mib": 8192}


def recover(plan: Plan) -> list[Figure]:
    """Every process but Redis killed beside `plan.retained` messages; then Redis."""
    with Bus(plan.base, LARGE) as bus:
        count = fill(plan, bus, plan.retained)
        killed: dict[str, list[float]] = {name: [] for name in PROCESSES}
        kept, anew, bare = [], [], []
        commands = _commands(bus)
        executable = psutil.Process(_pid(bus.status(), "redis")).exe()
        for repeat in range(plan.repeats):
            _again(bus)
            for name in PROCESSES:
                plan.say(f"{name} killed, {repeat + 1} of {plan.repeats}")
                killed[name].append(_kill(bus, name))
            plan.say(f"Redis killed, {repeat + 1} of {plan.repeats}")
            _await_snapshot(bus)
            kept.append(_kill(bus, "redis"))
            _again(bus)
            shutil.rmtree(bus.place.paths.snapshot_directory)
            anew.append(_kill(bus, "redis"))
            plan.say(f"bare XADD, {repeat + 1} of {plan.repeats}")
            bare.append(_bare_rate(plan, executable, commands))
    rates = [count / seconds for seconds in anew]
    return [
        *(
            at_most(f"{name} killed, ready again", seconds, "s", MOST_SECONDS)
            for name, seconds in killed.items()
        ),
        figure("messages retained meanwhile", [count], ""),
        _judged(
            "Redis killed, snapshot and catch-up, faster than from nothing",
            ratios(anew, kept),
            LEAST_OF_NOTHING,
            count,
        ),
        figure("Redis killed, snapshot and catch-up", kept, "s"),
        figure("Redis killed, from nothing", anew, "s"),
        _judged("rebuilt, of bare XADD", ratios(rates, bare), LEAST_RATE, count),
        figure("rebuilt", rates, "messages/s"),
        figure("bare XADD, pipelines of 256", bare, "messages/s"),
    ]


def restart(plan: Plan) -> list[Figure]:
    """Started again beside `plan.restarted` messages: with Redis' snapshot, with one that lacks the
    last fifth, and without."""
    bus = Bus(plan.base, LARGE)
    aside = os.path.join(bus.place.directory, "aside")
    snapshots = bus.place.paths.snapshot_directory
    with bus:
        early = fill(plan, bus, plan.restarted * 4 // 5)
        bus.keep()
    shutil.copytree(snapshots, aside)
    with bus:
        executable = psutil.Process(_pid(bus.status(), "redis")).exe()
        count = fill(plan, bus, early + plan.restarted // 5)
        missing = _commands(bus, count - early)
        bus.keep()
    kept, behind, anew, bare = [], [], [], []
    for repeat in range(plan.repeats):
        plan.say(f"restart, {repeat + 1} of {plan.repeats}")
        kept.append(_started(bus))
        shutil.rmtree(snapshots)
        shutil.copytree(aside, snapshots)
        behind.append(_started(bus))
        shutil.rmtree(snapshots)
        anew.append(_started(bus))
        bare.append(_bare_rate(plan, executable, missing))
    bus.place.remove()
    rates = [len(missing) / max(late - soon, 1e-3) for late, soon in zip(behind, kept, strict=True)]
    return [
        _judged(
            "started with a snapshot, faster than from nothing",
            ratios(anew, kept),
            LEAST_OF_REBUILD,
            count,
        ),
        figure("started with a snapshot", kept, "s"),
        figure("started from nothing", anew, "s"),
        figure("messages retained", [count], ""),
        _judged("caught up, of bare XADD", ratios(rates, bare), LEAST_RATE, len(missing)),
        figure("caught up", rates, "messages/s"),
        figure("bare XADD of as many", bare, "messages/s"),
        figure("started with a snapshot that lacks some", behind, "s"),
        figure("messages that it lacks", [len(missing)], ""),
    ]


def _judged(name: str, samples: Sequence[float], bound: float, messages: int) -> Figure:
    """A target only where there are so many that what a start takes without any does not count."""
    if messages < ENOUGH:
        return figure(name, samples, "x")
    return at_least(name, samples, "x", bound)


def fill(
    plan: Plan,
    bus: Bus,
    messages: int,
    content_bytes: int = CONTENT_BYTES,
    *,
    varied: bool = False,
) -> int:
    """Sends until the bus holds that many; how many it holds then, all of them everywhere. Raises
    RuntimeError where it has no room for them."""
    held = turn = bus.status()["totals"]["messages"]
    while held < messages:
        turn += 1
        spec = Spec(
            *(bus.place.paths.socket, f"fill{turn}", SENDERS, IN_FLIGHT, content_bytes),
            warm_up=0.0,
            seconds=60.0,
            messages=messages - held,
            varied=varied,
        )
        run_load(spec, plan, f"filling, {held} of {messages}")
        totals = bus.status()["totals"]
        if totals["messages"] <= held:
            raise RuntimeError(f"what is filled in goes again: {totals}")
        held = totals["messages"]
    settled(bus)
    return held


def settled(bus: Bus) -> None:
    """Waits until Redis and the index hold everything."""
    _until(bus, is_whole)


def is_whole(status: dict[str, Any]) -> bool:
    """Whether Redis and the index hold what the database holds."""
    commit = status["sqlite"]["commit_id"]
    return bool(
        status["state"] == "ready"
        and status["redis"]["commit_id"] == commit
        and (status["index"] is None or status["index"]["commit_id"] == commit)
    )


# ---- killed


def _kill(bus: Bus, name: str) -> float:
    """Seconds until the bus is ready with a successor; everything is whole then."""
    killed = _pid(bus.status(), name)
    assert killed is not None

    def replaced(status: dict[str, Any]) -> bool:
        return status["state"] == "ready" and _pid(status, name) not in {None, killed}

    began = time.perf_counter()
    os.kill(killed, signal.SIGKILL)
    _until(bus, replaced)
    took = time.perf_counter() - began
    settled(bus)
    return took


def _again(bus: Bus) -> None:
    """A daemon that knows of no death: it starts a successor at once only for the first one within
    a minute."""
    bus.restart()
    settled(bus)


def _await_snapshot(bus: Bus) -> None:
    """Until the server has written what it holds, but for what changes too little for one."""
    redis = Redis(socket_of(bus.place.paths))
    with closing(redis):
        if int(redis.info()["rdb_changes_since_last_save"]) > 0:
            with suppress(Exception):
                redis.run(b"BGSAVE")
        deadline = time.monotonic() + BOUND_SECONDS
        while redis.info()["rdb_bgsave_in_progress"] != "0":
            if time.monotonic() > deadline:
                raise TimeoutError("the snapshot is not written")
            time.sleep(0.05)


def _started(bus: Bus) -> float:
    """Seconds from the start of the daemon until it says that it is ready; it is stopped then."""
    return started(bus, lambda status: status["state"] == "ready")


def started(bus: Bus, condition: Callable[[dict[str, Any]], bool]) -> float:
    """Seconds from the start of the daemon until its status is so; it is stopped once it is
    whole, and its files stay."""
    began = time.perf_counter()
    with bus:
        _until(bus, condition)
        seconds = time.perf_counter() - began
        _until(bus, is_whole)
        bus.keep()
    return seconds


def _pid(status: dict[str, Any], name: str) -> int | None:
    return next((item["pid"] for item in status["processes"] if item["name"] == name), None)


def _until(bus: Bus, condition: Callable[[dict[str, Any]], bool]) -> None:
    deadline = time.monotonic() + BOUND_SECONDS
    while time.monotonic() < deadline:
        with suppress(OSError, RuntimeError):
            if condition(bus.status()):
                return
        time.sleep(0.005)
    raise TimeoutError("the bus does not come back")


# ---- the bare loop


Commands = list[tuple[bytes, ...]]


def _commands(bus: Bus, newest: int = -1) -> Commands:
    """What Redis is given of the newest messages; of all of them, where no number is given."""
    database = bus.place.paths.database
    select = "SELECT seq, session_id, envelope FROM messages ORDER BY id DESC LIMIT ?"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        rows = connection.execute(select, (newest,)).fetchall()
    return [
        (
            b"XADD",
            b"s:1",
            keys.entry_id(seq),
            keys.ENVELOPE,
            envelope,
            keys.SESSION,
            b"%d" % session,
        )
        for seq, session, envelope in reversed(rows)
    ]


def _bare_rate(plan: Plan, executable: str, commands: Commands) -> float:
    """The same entries in a server of the same kind, packed and pipelined by one client; messages a
    second."""
    with server(plan.base, executable) as (_, redis):
        began = time.perf_counter()
        for start in range(0, len(commands), PIPELINE):
            redis.pipeline(commands[start : start + PIPELINE])
        return len(commands) / (time.perf_counter() - began)
