"""How soon the bus is whole again: after each of its processes was killed, and after a restart,
with what Redis had kept and from nothing."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any, Final

import psutil  # type: ignore[import-untyped]

from agentbus.mirror import keys
from bench.accept import CONTENT_BYTES, IN_FLIGHT, SENDERS, SETTINGS
from bench.bus import Bus
from bench.figures import Figure, at_least, at_most, figure
from bench.load import Spec
from bench.redis import Redis, socket_of
from bench.runs import Plan, run_load

PROCESSES: Final = ("writer", "projector", "gateway", "indexer")
MOST_SECONDS: Final = 1.0
LEAST_OF_NOTHING: Final = 3.0
LEAST_OF_REBUILD: Final = 5.0
LEAST_RATE: Final = 0.5
PIPELINE: Final = 256
BOUND_SECONDS: Final = 180.0
LARGE: Final = {**SETTINGS, "sqlite_budget_mib": 8192, "redis_budget_mib": 8192}


def recover(plan: Plan) -> list[Figure]:
    """Every process but Redis killed beside `plan.retained` messages; then Redis."""
    with Bus(plan.base, LARGE) as bus:
        count = fill(plan, bus, plan.retained)
        killed: dict[str, list[float]] = {name: [] for name in PROCESSES}
        kept, anew = [], []
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
        bare = _bare_rate(plan, bus)
    rates = [count / seconds for seconds in anew]
    return [
        *(
            at_most(f"{name} killed, ready again", seconds, "s", MOST_SECONDS)
            for name, seconds in killed.items()
        ),
        figure("messages retained meanwhile", [count], ""),
        at_least(
            "Redis killed, snapshot and catch-up, faster than from nothing",
            [slow / fast for fast, slow in zip(kept, anew, strict=True)],
            "x",
            LEAST_OF_NOTHING,
        ),
        figure("Redis killed, snapshot and catch-up", kept, "s"),
        figure("Redis killed, from nothing", anew, "s"),
        at_least("rebuilt, of bare XADD", [rate / bare for rate in rates], "x", LEAST_RATE),
        figure("rebuilt", rates, "messages/s"),
        figure("bare XADD, pipelines of 256", [bare], "messages/s"),
    ]


def restart(plan: Plan) -> list[Figure]:
    """Started again beside `plan.restarted` messages: with Redis' snapshot, and without."""
    bus = Bus(plan.base, LARGE)
    with bus:
        count = fill(plan, bus, plan.restarted)
        bus.keep()
    kept, anew = [], []
    for repeat in range(plan.repeats):
        plan.say(f"restart, {repeat + 1} of {plan.repeats}")
        kept.append(_started(bus))
        shutil.rmtree(bus.place.paths.snapshot_directory)
        anew.append(_started(bus))
    bus.place.remove()
    return [
        at_least(
            "started with a snapshot, faster than from nothing",
            [slow / fast for fast, slow in zip(kept, anew, strict=True)],
            "x",
            LEAST_OF_REBUILD,
        ),
        figure("started with a snapshot", kept, "s"),
        figure("started from nothing", anew, "s"),
        figure("messages retained", [count], ""),
    ]


def fill(
    plan: Plan,
    bus: Bus,
    messages: int,
    content_bytes: int = CONTENT_BYTES,
    *,
    varied: bool = False,
) -> int:
    """Sends until the bus holds that many; how many it holds then, all of them everywhere."""
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
        held = bus.status()["totals"]["messages"]
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
    server = Redis(socket_of(bus.place.paths))
    with closing(server):
        if int(server.info()["rdb_changes_since_last_save"]) > 0:
            with suppress(Exception):
                server.run(b"BGSAVE")
        deadline = time.monotonic() + BOUND_SECONDS
        while server.info()["rdb_bgsave_in_progress"] != "0":
            if time.monotonic() > deadline:
                raise TimeoutError("the snapshot is not written")
            time.sleep(0.05)


def _started(bus: Bus) -> float:
    """Seconds from the start of the daemon until it says that it is ready; it is stopped then."""
    began = time.perf_counter()
    with bus:
        _until(bus, lambda status: status["state"] == "ready")
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


def _bare_rate(plan: Plan, bus: Bus) -> float:
    """The same entries in a server of the same kind, packed and pipelined by one client; messages a
    second."""
    plan.say("bare XADD")
    executable = psutil.Process(_pid(bus.status(), "redis")).exe()
    database = bus.place.paths.database
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        rows = connection.execute(
            "SELECT seq, session_id, envelope FROM messages ORDER BY id"
        ).fetchall()
    commands = [
        (
            b"XADD",
            b"s:1",
            keys.entry_id(seq),
            keys.ENVELOPE,
            envelope,
            keys.SESSION,
            b"%d" % session,
        )
        for seq, session, envelope in rows
    ]
    with _server(plan.base, executable) as server:
        began = time.perf_counter()
        for start in range(0, len(commands), PIPELINE):
            server.pipeline(commands[start : start + PIPELINE])
        return len(commands) / (time.perf_counter() - began)


@contextlib.contextmanager
def _server(base: str, executable: str) -> Iterator[Redis]:
    directory = tempfile.mkdtemp(prefix="ab-bare-", dir=base)
    path = os.path.join(directory, "s")
    command = [executable, "--port", "0", "--unixsocket", path, "--save", ""]
    process = subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL)
    try:
        with closing(_connected(path)) as server:
            yield server
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(directory, ignore_errors=True)


def _connected(path: str) -> Redis:
    deadline = time.monotonic() + BOUND_SECONDS
    while True:
        try:
            return Redis(path)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
