"""One channel and many subscribers: messages handed on, against a server that only copies bytes."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import IO, Final

import msgspec

from bench.accept import CONTENT_BYTES, SETTINGS
from bench.bus import Bus
from bench.figures import Chart, Figure, Point, at_least, figure, ratios
from bench.load import Sender, Spec
from bench.readers import MARK, Came
from bench.readers import Spec as Readers
from bench.runs import ROOT, Plan
from bench.usage import cpu_seconds

TARGET_WIDTH: Final = 50
LEAST_RATIO: Final = 0.5
SENDERS: Final = 4
"""One alone would meet the highest rate limit there is."""

IN_FLIGHT: Final = 128
"""Half a window of 256 messages: so many that little is waited for commits."""

FEWEST: Final = 300
NARROWEST: Final = 4
"""As many messages as to so many go to fewer, or those would take very long."""

BOUND_SECONDS: Final = 120.0
SHARE: Final = Chart("handed on, of the bare server", "subscribers")
RATE: Final = Chart("handed on", "subscribers")


def fan_out(plan: Plan) -> list[Figure]:
    """The readers are a process of their own, which counts and reports seldom; the bare server
    copies as many bytes a message to as many sockets, of the same readers."""
    figures = []
    for width in plan.widths:
        ours, bare = [], []
        for repeat in range(plan.repeats):
            plan.say(f"to {width}, run {repeat + 1} of {plan.repeats}")
            rate, size = _bus(plan, width)
            ours.append(rate)
            bare.append(bare_rate(plan, width, size))
        name, shares = f"fan-out to {width}, of the bare server", ratios(ours, bare)
        point = Point(SHARE, "bus", width)
        if width == TARGET_WIDTH:
            figures.append(at_least(name, shares, "x", LEAST_RATIO, point))
        else:
            figures.append(figure(name, shares, "x", point))
        figures += [
            figure(f"fan-out to {width}", ours, "messages/s", Point(RATE, "bus", width)),
            figure(
                f"bare server, {width} sockets",
                bare,
                "messages/s",
                Point(RATE, "bare server", width),
            ),
        ]
    return figures


def messages(plan: Plan, width: int) -> int:
    """That are sent to so many subscribers."""
    return max(FEWEST, plan.handed_on // max(NARROWEST, width))


def _bus(plan: Plan, width: int) -> tuple[float, int]:
    with Bus(plan.base, SETTINGS) as bus:
        rate, size, _ = handed_on(plan, bus, width)
    return rate, size


def handed_on(
    plan: Plan, bus: Bus, width: int, watched: Sequence[int] = ()
) -> tuple[float, int, float]:
    """Messages handed on a second, the bytes of one of them, and seconds of processor time of the
    processes that are watched for each message sent."""
    count = messages(plan, width)
    path = bus.place.paths.socket
    with _readers(Readers(path, width, count, is_bus=True)) as pipe:
        spec = Spec(path, "fan", 1, IN_FLIGHT, CONTENT_BYTES, 0.0, 0.0)
        senders = [Sender(spec, number) for number in range(SENDERS)]
        left = count

        def more(sender: Sender, room: int) -> None:
            nonlocal left
            now = min(room, left)
            left -= now
            if now:
                sender.send(now)

        spent = cpu_seconds(watched)
        began = time.perf_counter()
        for sender in senders:
            more(sender, IN_FLIGHT // SENDERS)
        came = _until_read(
            pipe, {sender.socket: partial(_answered, sender, more) for sender in senders}
        )
        took = time.perf_counter() - began
        spent = (cpu_seconds(watched) - spent) / count
    for sender in senders:
        sender.socket.close()
    return came.messages / took, came.bytes // came.messages, spent


def _answered(sender: Sender, more: Callable[[Sender, int], None]) -> None:
    more(sender, sender.answered())


@contextlib.contextmanager
def connected(path: str) -> Iterator[socket.socket]:
    """Straight to the server."""
    with socket.socket(socket.AF_UNIX) as sender:
        sender.connect(path)
        yield sender


def bare_rate(
    plan: Plan,
    width: int,
    size: int,
    way: Callable[[str], contextlib.AbstractContextManager[socket.socket]] = connected,
) -> float:
    """Lines of that size; as many in flight as the bus' senders have, by that way to the server."""
    count = messages(plan, width)
    line = (b"{" + MARK + b'"').ljust(size - 3, b"x") + b'"}\n'
    with (
        _server(plan.base) as path,
        _readers(Readers(path, width, count, is_bus=False)) as pipe,
        way(path) as sender,
    ):
        sender.sendall(b"sender\n")
        sent = min(IN_FLIGHT, count)

        def answered() -> None:
            nonlocal sent
            now = min(len(sender.recv(1 << 16)), count - sent)
            sent += now
            sender.sendall(line * now)

        began = time.perf_counter()
        sender.sendall(line * sent)
        came = _until_read(pipe, {sender: answered})
        took = time.perf_counter() - began
    return came.messages / took


def _until_read(pipe: IO[bytes], senders: dict[socket.socket, Callable[[], None]]) -> Came:
    """Sends on until the readers have said what came. Raises TimeoutError, RuntimeError."""
    deadline = time.monotonic() + BOUND_SECONDS
    with contextlib.closing(selectors.DefaultSelector()) as selector:
        selector.register(pipe, selectors.EVENT_READ)
        for sender, answered in senders.items():
            selector.register(sender, selectors.EVENT_READ, answered)
        while time.monotonic() < deadline:
            for key, _ in selector.select(1.0):
                if key.data is not None:
                    key.data()
                    continue
                line = pipe.readline()
                if not line:
                    raise RuntimeError("the readers failed; what they said is above")
                return msgspec.json.decode(line, type=Came)
    raise TimeoutError("not everything came")


@contextlib.contextmanager
def _readers(spec: Readers) -> Iterator[IO[bytes]]:
    command = [sys.executable, "-m", "bench.readers", msgspec.json.encode(spec).decode()]
    with _process(command) as pipe:
        yield pipe


@contextlib.contextmanager
def _server(base: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="ab-fan-", dir=base) as directory:
        path = os.path.join(directory, "s")
        with _process([sys.executable, "-m", "bench.relay", "copy", path]):
            yield path


@contextlib.contextmanager
def _process(command: list[str]) -> Iterator[IO[bytes]]:
    """What it prints after `ready`."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"{command[2]} did not start; what it said is above")
        yield process.stdout
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
