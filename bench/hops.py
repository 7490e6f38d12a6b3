"""What the number of processes costs by itself: the ways of a message through bare ones.

What a target allows is a multiple of something that one process does alone. The bus is several
processes, and its messages have to pass them; so these are the lowest ratios that a bus of as many
processes could have on this machine, if its own work took no time at all.
"""

from __future__ import annotations

import contextlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import IO, Final

import msgspec

from agentbus.config import Settings
from agentbus.supervisor.redis_discovery import discover
from bench.accept import CONTENT_BYTES, MOST_LATENCY, SETTINGS, bare_latency
from bench.bare import Synchronous
from bench.bus import Bus, request
from bench.endtoend import relay_latencies
from bench.fanout import IN_FLIGHT, SENDERS, TARGET_WIDTH, bare_rate, handed_on
from bench.figures import Figure, figure, ratios
from bench.load import CHANNEL, text
from bench.redis import server
from bench.runs import ROOT, Plan

CHUNK: Final = 1 << 16
BEFORE: Final = ("writer", "projector", "redis")
"""What a message passes before the gateway hands it on."""


def hops(plan: Plan) -> list[Figure]:
    """Of a send, of one end to end, and of a fan-out; the bare loop beside them runs for half as
    long as elsewhere."""
    plan = msgspec.structs.replace(
        plan, bare_seconds=plan.bare_seconds / 2, warm_up=plan.warm_up / 2
    )
    sends = [row for synchronous in MOST_LATENCY for row in _send(plan, synchronous)]
    return [*sends, *_end_to_end(plan), *_fan_out(plan)]


# ---- a send: client, gateway, writer and its commit, gateway, client


def _send(plan: Plan, synchronous: Synchronous) -> list[Figure]:
    bare, floor = [bare_latency(plan, synchronous)], []
    for repeat in range(plan.repeats):
        plan.say(f"a send, {synchronous}, run {repeat + 1} of {plan.repeats}")
        with _sending(plan.base, synchronous) as (write, read):
            floor.append(_median(plan, write, read))
        bare.append(bare_latency(plan, synchronous))
    beside = [statistics.mean(bare[at : at + 2]) for at in range(plan.repeats)]
    name = f"floor of a send, {synchronous}"
    return [
        figure(f"{name}, of the bare loop", ratios(floor, beside), "x"),
        figure(f"{name}, median", floor, "ms"),
        figure(f"{name}: the bare loop, batches of 1, median", bare, "ms"),
    ]


Write = Callable[[bytes], object]
Read = Callable[[], bytes]


@contextlib.contextmanager
def _sending(base: str, synchronous: Synchronous) -> Iterator[tuple[Write, Read]]:
    with ExitStack() as stack:
        client, sender = _pair(stack)
        to_writer, of_gateway = _pair(stack)
        directory = _directory(stack, base)
        _started(stack, "writer", of_gateway, directory, synchronous)
        _started(stack, "gateway", sender, to_writer)
        yield client.sendall, partial(client.recv, CHUNK)


# ---- end to end: adapter, gateway, writer, projector, Redis, projector, gateway, adapter


def _end_to_end(plan: Plan) -> list[Figure]:
    """The answer to the sender passes as well, as it does in the bus, and is read in between."""
    floor, bare = [], []
    for repeat in range(plan.repeats):
        plan.say(f"end to end, run {repeat + 1} of {plan.repeats}")
        bare.append(statistics.median(relay_latencies(plan)) + bare_latency(plan))
        with _passing_on(plan.base) as (write, read):
            floor.append(_median(plan, write, read))
    name = "floor of end to end"
    return [
        figure(f"{name}, of relay and commit", ratios(floor, bare), "x"),
        figure(f"{name}, median", floor, "ms"),
        figure(f"{name}: relay and one commit, median", bare, "ms"),
    ]


@contextlib.contextmanager
def _passing_on(base: str) -> Iterator[tuple[Write, Read]]:
    with ExitStack() as stack:
        sender, of_sender = _pair(stack)
        receiver, of_receiver = _pair(stack)
        to_writer, of_gateway = _pair(stack)
        to_projector, of_writer = _pair(stack)
        visible, of_projector = _pair(stack)
        path, _ = stack.enter_context(server(base, discover(Settings()).executable))
        directory = _directory(stack, base)
        _started(stack, "writer", of_gateway, directory, "full", to_projector)
        _started(stack, "projector", of_writer, visible, path)
        _started(stack, "gateway", of_sender, to_writer, of_projector, of_receiver)
        into, answers = _pipes(_started(stack, "adapter", sender))
        _, out = _pipes(_started(stack, "adapter", receiver))

        def read() -> bytes:
            came = out.readline()
            answers.readline()
            return came

        def write(line: bytes) -> None:
            into.write(line)
            into.flush()

        yield write, read


def _median(plan: Plan, write: Write, read: Read) -> float:
    """Milliseconds from a line of a send having been given until it, or its answer, has come."""
    message = {"attachment": "bare", "channel": CHANNEL, "content": text(CONTENT_BYTES)}
    line = request(1, "send", {**message, "message_id": "bare-1"}) + b"\n"
    took = []
    for _ in range(plan.exchanges):
        began = time.perf_counter()
        write(line)
        came = read()
        took.append((time.perf_counter() - began) * 1000)
        if not came.endswith(b"\n"):
            raise RuntimeError("a bare process has ended; what it said is above")
    return statistics.median(took[plan.exchanges // 10 :])


# ---- fan-out: the bare server, while another process works as much as the rest of the bus


def _fan_out(plan: Plan) -> list[Figure]:
    """Each message passes a process that computes as long as the bus needs for one until it is
    visible, and then the bare server, which has the other core to share with the readers. What the
    bus may do later, its index above all, is left out."""
    floor, alone, before = [], [], []
    width = TARGET_WIDTH
    for repeat in range(plan.repeats):
        plan.say(f"fan-out to {width}, run {repeat + 1} of {plan.repeats}")
        with Bus(plan.base, SETTINGS) as bus:
            processes = bus.status()["processes"]
            watched = [each["pid"] for each in processes if each["name"] in BEFORE]
            _, size, cost = handed_on(plan, bus, width, watched)
        before.append(cost * 1e6)
        alone.append(bare_rate(plan, width, size))
        floor.append(bare_rate(plan, width, size, partial(_worked_on, cost * 1e6)))
    name = f"floor of a fan-out to {width}"
    return [
        figure(f"{name}, of the bare server alone", ratios(floor, alone), "x"),
        figure(name, floor, "messages/s"),
        figure(f"{name}: the bare server alone", alone, "messages/s"),
        figure(f"{name}: {', '.join(BEFORE)}, for a message", before, "us"),
    ]


@contextlib.contextmanager
def _worked_on(microseconds: float, path: str) -> Iterator[socket.socket]:
    with ExitStack() as stack:
        client, sender = _pair(stack)
        to_server = stack.enter_context(socket.socket(socket.AF_UNIX))
        to_server.connect(path)
        together = IN_FLIGHT // SENDERS  # as many as one of the bus' senders has in flight
        _started(stack, "work", sender, to_server, f"{microseconds:.1f}", str(together))
        yield client


# ---- the processes


def _pair(stack: ExitStack) -> tuple[socket.socket, socket.socket]:
    one, other = socket.socketpair()
    return stack.enter_context(one), stack.enter_context(other)


def _directory(stack: ExitStack, base: str) -> str:
    return stack.enter_context(tempfile.TemporaryDirectory(prefix="ab-hops-", dir=base))


def _started(
    stack: ExitStack, role: str, *arguments: str | socket.socket
) -> subprocess.Popen[bytes]:
    """Sockets are handed over: what is left here of them is closed, so that their ends are seen."""
    given = [each for each in arguments if isinstance(each, socket.socket)]
    words = [str(each.fileno()) if isinstance(each, socket.socket) else each for each in arguments]
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.hop", role, *words],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[each.fileno() for each in given],
    )
    stack.callback(_ended, process)
    for each in given:
        each.close()
    _, out = _pipes(process)
    if out.readline() != b"ready\n":
        raise RuntimeError(f"the bare {role} did not start; what it said is above")
    return process


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()
