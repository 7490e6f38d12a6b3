"""From one agent's send to another one's recv, over both their pipes, one at a time."""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import IO, Any, Final

import msgspec

from bench.accept import CONTENT_BYTES, SETTINGS, bare_latency
from bench.bus import Bus
from bench.figures import Figure, at_most, figure, percentile, ratios
from bench.load import CHANNEL, text
from bench.runs import ROOT, Plan
from bench.start import Adapter

MOST_RATIO: Final = 2.0


def end_to_end(plan: Plan) -> list[Figure]:
    """The receiver waits in `recv` when the sender calls `send`; the clock runs from the call's
    line until the result's. The relay does the same without storage, and one commit is added."""
    bus: list[float] = []
    bare: list[float] = []
    slowest: list[float] = []
    commits: list[float] = []
    for repeat in range(plan.repeats):
        plan.say(f"end to end, run {repeat + 1} of {plan.repeats}")
        commit = bare_latency(plan)
        relay = relay_latencies(plan)
        took = _bus_latencies(plan)
        commits.append(commit)
        bare.append(statistics.median(relay) + commit)
        bus.append(statistics.median(took))
        slowest.append(percentile(took, 99))
    return [
        at_most("end to end, of relay and commit", ratios(bus, bare), "x", MOST_RATIO),
        figure("end to end, send to recv, median", bus, "ms"),
        figure("end to end, 99th percentile", slowest, "ms"),
        figure("bare relay and one commit, median", bare, "ms"),
        figure("of these the commit", commits, "ms"),
    ]


def _bus_latencies(plan: Plan) -> list[float]:
    count = plan.exchanges
    with Bus(plan.base, SETTINGS) as bus:
        sender, receiver = Adapter(bus.place), Adapter(bus.place)
        sender.call("create_channel", name=CHANNEL)
        receiver.call("subscribe", channel=CHANNEL)
        content = text(CONTENT_BYTES)
        took = [_once(sender, receiver, content) for _ in range(count)]
        sender.end()
        receiver.end()
    return took[count // 10 :]


def _once(sender: Adapter, receiver: Adapter, content: str) -> float:
    waiting = receiver.begin("tools/call", {"name": "recv", "arguments": {"wait_seconds": 10}})
    began = time.perf_counter()
    arguments = {"channel": CHANNEL, "content": content}
    sent = sender.begin("tools/call", {"name": "send", "arguments": arguments})
    result = receiver.finish(waiting)
    took = (time.perf_counter() - began) * 1000
    sender.finish(sent)
    if len(result["structuredContent"]["messages"]) != 1:
        raise RuntimeError("the message did not come alone")
    return took


# ---- the relay


def relay_latencies(plan: Plan) -> list[float]:
    """Milliseconds from one pipe to the other, of which the first tenth is left out."""
    count = plan.exchanges
    document: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "content": text(CONTENT_BYTES)}
    line = msgspec.json.encode(document) + b"\n"
    with _relay(plan.base) as (sender, receiver):
        took = []
        for _ in range(count):
            began = time.perf_counter()
            _stdin(sender).write(line)
            _stdin(sender).flush()
            _stdout(receiver).readline()
            took.append((time.perf_counter() - began) * 1000)
    return took[count // 10 :]


@contextlib.contextmanager
def _relay(base: str) -> Iterator[tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]]:
    with tempfile.TemporaryDirectory(prefix="ab-relay-", dir=base) as directory:
        path = os.path.join(directory, "s")
        server = _start("server", path)
        receiver = _start("pipe", path)  # before the sender, so that it is accepted before
        sender = _start("pipe", path)
        try:
            yield sender, receiver
        finally:
            for process in (sender, receiver, server):
                process.send_signal(signal.SIGKILL)
                process.communicate()


def _start(kind: str, path: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "bench.relay", kind, path]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    _stdout(process).readline()
    return process


def _stdin(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdin is not None
    return process.stdin


def _stdout(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout
