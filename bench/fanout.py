"""One sender and many subscribers: messages handed on, against a server that only copies bytes."""

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
from collections.abc import Iterator
from functools import partial
from typing import Final

from bench.accept import CONTENT_BYTES, SETTINGS
from bench.bus import Bus, request
from bench.figures import Figure, at_least, figure
from bench.load import Sender, Spec, Subscriber
from bench.runs import ROOT, Plan

WIDTHS: Final = (1, 10, 50, 100)
TARGET_WIDTH: Final = 50
LEAST_RATIO: Final = 0.5
SENDERS: Final = 4
"""One alone would meet the highest rate limit there is."""

IN_FLIGHT: Final = 32
HANDED_ON: Final = 40_000
"""Messages times subscribers of one measurement."""

BOUND_SECONDS: Final = 120.0


def fan_out(plan: Plan) -> list[Figure]:
    """Subscribers read raw bytes and report what they have; the bare server copies deliveries of
    the same size to as many sockets, which are read in the same way."""
    figures = []
    for width in WIDTHS:
        ours, bare = [], []
        for repeat in range(plan.repeats):
            plan.say(f"fan-out to {width}, run {repeat + 1} of {plan.repeats}")
            bare.append(_bare(plan, width))
            ours.append(_bus(plan, width))
        ratios = [mine / theirs for mine, theirs in zip(ours, bare, strict=True)]
        name = f"fan-out to {width}"
        if width == TARGET_WIDTH:
            figures.append(at_least(f"{name}, of the bare server", ratios, "x", LEAST_RATIO))
        else:
            figures.append(figure(f"{name}, of the bare server", ratios, "x"))
        figures.append(figure(f"{name}, handed on", ours, "messages/s"))
        figures.append(figure(f"bare server, {width} sockets", bare, "messages/s"))
    return figures


def _messages(plan: Plan, width: int) -> int:
    return max(200, HANDED_ON * (plan.repeats - 1) // width)


def _bus(plan: Plan, width: int) -> float:
    count = _messages(plan, width)
    with Bus(plan.base, SETTINGS) as bus:
        spec = Spec(bus.place.paths.socket, "fan", 1, IN_FLIGHT, CONTENT_BYTES, 0.0, 0.0)
        readers = [_reader(spec, number) for number in range(width)]
        senders = [Sender(spec, number) for number in range(SENDERS)]
        with contextlib.closing(selectors.DefaultSelector()) as selector:
            for reader in readers:
                selector.register(reader.socket, selectors.EVENT_READ, reader.take)
            left = count

            def answered(sender: Sender) -> None:
                nonlocal left
                more = min(sender.answered(), left)
                left -= more
                if more:
                    sender.send(more)

            for sender in senders:
                selector.register(sender.socket, selectors.EVENT_READ, partial(answered, sender))
            began = time.perf_counter()
            for sender in senders:
                left -= IN_FLIGHT // SENDERS
                sender.send(IN_FLIGHT // SENDERS)
            _turn(selector, lambda: all(reader.received >= count for reader in readers))
            took = time.perf_counter() - began
        for connection in (*senders, *readers):
            connection.socket.close()
    return count * width / took


def _reader(spec: Spec, number: int) -> Subscriber:
    return Subscriber(Spec(**{**_fields(spec), "run": f"fan{number}"}))


def _fields(spec: Spec) -> dict[str, object]:
    return {name: getattr(spec, name) for name in spec.__struct_fields__}


def _turn(selector: selectors.BaseSelector, done: object) -> None:
    deadline = time.monotonic() + BOUND_SECONDS
    while not done():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise TimeoutError("not everything came")
        for key, _ in selector.select(1.0):
            key.data()


# ---- the bare server


def _bare(plan: Plan, width: int) -> float:
    """Lines as long as a delivery of one message, credit by credit as the bus' sender has it."""
    count = _messages(plan, width)
    line = request(1, "deliver", {"content": "x" * (CONTENT_BYTES + 500)}) + b"\n"
    wanted = count * len(line)
    with _server(plan.base, width) as (sender, readers):
        got = [0] * width
        with contextlib.closing(selectors.DefaultSelector()) as selector:

            def read(number: int) -> None:
                got[number] += len(readers[number].recv(1 << 18))

            for number, reader in enumerate(readers):
                selector.register(reader, selectors.EVENT_READ, lambda number=number: read(number))
            sent = 0
            began = time.perf_counter()
            while min(got) < wanted:
                while sent < count and sent * len(line) - min(got) < IN_FLIGHT * len(line):
                    sender.sendall(line)
                    sent += 1
                for key, _ in selector.select(1.0):
                    key.data()
            took = time.perf_counter() - began
    return count * width / took


@contextlib.contextmanager
def _server(base: str, width: int) -> Iterator[tuple[socket.socket, list[socket.socket]]]:
    with tempfile.TemporaryDirectory(prefix="ab-fan-", dir=base) as directory:
        path = os.path.join(directory, "s")
        command = [sys.executable, "-m", "bench.relay", "server", path]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        sockets = [socket.socket(socket.AF_UNIX) for _ in range(width + 1)]
        try:
            for each in sockets:
                each.connect(path)
            yield sockets[-1], sockets[:-1]
        finally:
            for each in sockets:
                each.close()
            process.send_signal(signal.SIGKILL)
            process.communicate()
