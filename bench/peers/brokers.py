"""Ours against NATS JetStream and Redis Streams, both syncing each write, by their own clients.

All send 1 KiB and wait for the answer before the next: one alone, and four at once. Ours goes over
the daemon's socket, as theirs go over theirs; an adapter between is measured with the other buses.
"""

from __future__ import annotations

import itertools
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import hiredis
import msgspec

from agentbus.config import Settings
from agentbus.supervisor.redis_discovery import discover
from bench.accept import CONTENT_BYTES, SETTINGS
from bench.bus import Bus
from bench.figures import Figure, at_least, figure
from bench.load import Spec, text
from bench.peers.compare import programs
from bench.redis import server
from bench.runs import Plan, run_load

SENDERS: Final = (1, 4)
LEAST_OF_NATS: Final = 0.5
START_SECONDS: Final = 20
HERE: Final = Path(__file__).resolve().parent


def brokers(plan: Plan) -> list[Figure]:
    """Accepted messages a second; what is not installed is left out and said."""
    kinds: dict[str, Callable[[Plan, int], float]] = {"agentbus": _ours, "Redis Streams": _redis}
    if programs() and os.path.exists(_nats_python()):
        kinds["NATS JetStream"] = _nats
    else:
        sys.stderr.write("\nNATS JetStream left out: not installed\n")
    rates: dict[tuple[str, int], list[float]] = {}
    for _ in range(plan.peer_runs):
        for count, (name, rate) in itertools.product(SENDERS, kinds.items()):
            plan.say(f"brokers: {name}, {count} at once")
            rates.setdefault((name, count), []).append(rate(plan, count))
    return [row for count in SENDERS for row in _rows(kinds, rates, count)]


def _rows(
    kinds: dict[str, Any], rates: dict[tuple[str, int], list[float]], count: int
) -> list[Figure]:
    title = f"synchronous sends, {count} at once"
    rows = [figure(f"{title}: {name}", rates[name, count], "messages/s") for name in kinds]
    if "NATS JetStream" in kinds:
        pairs = zip(rates["agentbus", count], rates["NATS JetStream", count], strict=True)
        ratios = [ours / theirs for ours, theirs in pairs]
        rows.append(at_least(f"{title}: of NATS JetStream", ratios, "x", LEAST_OF_NATS))
    return rows


def _seconds(plan: Plan) -> float:
    return min(plan.bare_seconds, 3.0)


# ---- ours


def _ours(plan: Plan, count: int) -> float:
    """One subscriber takes everything besides, which the others have not."""
    with Bus(plan.base, SETTINGS) as bus:
        spec = Spec(
            socket=bus.place.paths.socket,
            run="load",
            senders=count,
            in_flight=1,
            content_bytes=CONTENT_BYTES,
            warm_up=plan.warm_up,
            seconds=_seconds(plan),
        )
        result = run_load(spec, plan, "brokers: agentbus")
    return result.accepted / result.seconds


# ---- Redis Streams


def _redis(plan: Plan, count: int) -> float:
    """A server that syncs its log before it answers."""
    options = ("--appendonly", "yes", "--appendfsync", "always")
    with server(plan.base, discover(Settings()).executable, *options) as (path, _):
        sockets = [_connected(path) for _ in range(count)]
        rate = _adding(sockets, text(CONTENT_BYTES).encode(), _seconds(plan))
        for each in sockets:
            each.close()
    return rate


def _adding(sockets: Sequence[socket.socket], content: bytes, seconds: float) -> float:
    """Each socket is written to again once its answer has come; answers a second."""
    command = hiredis.pack_command((b"XADD", b"work", b"*", b"content", content))
    done = 0
    with selectors.DefaultSelector() as selector:
        for each in sockets:
            selector.register(each, selectors.EVENT_READ, hiredis.Reader())
            each.sendall(command)
        began = time.perf_counter()
        while (left := began + seconds - time.perf_counter()) > 0:
            for key, _ in selector.select(left):
                key.data.feed(key.fileobj.recv(1 << 16))
                reply = key.data.gets()
                if isinstance(reply, Exception):
                    raise reply
                if reply is not False:
                    done += 1
                    key.fileobj.sendall(command)
        return done / (time.perf_counter() - began)


def _connected(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    return connection


# ---- NATS JetStream


def _nats_python() -> str:
    return os.path.join(programs(), "brokers", "bin", "python")


def _nats(plan: Plan, count: int) -> float:
    executable = os.path.join(programs(), "brokers", "bin", "nats-server")
    with tempfile.TemporaryDirectory(prefix="ab-", dir=plan.base) as directory:
        port = _free_port()
        config = os.path.join(directory, "nats.conf")
        Path(config).write_text(
            f"listen: 127.0.0.1:{port}\n"
            f"jetstream {{ store_dir: {directory}, sync_interval: always }}\n"
        )
        up = lambda: socket.create_connection(("127.0.0.1", port), 1).close()  # noqa: E731
        with _running([executable, "-c", config], directory, up):
            run = [_nats_python(), str(HERE / "nats_client.py"), f"nats://127.0.0.1:{port}"]
            run += [str(_seconds(plan)), str(count), str(CONTENT_BYTES)]
            said = subprocess.run(run, check=True, stdout=subprocess.PIPE).stdout
    result = msgspec.json.decode(said)
    return len(result["took"]) / result["elapsed"]


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def _running(command: list[str], directory: str, up: Callable[[], None]) -> Iterator[None]:
    """A server, once `up` does not raise OSError any more; ended with the block."""
    process = subprocess.Popen(
        command,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                up()
                break
            except OSError:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise
                time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.wait(START_SECONDS)
