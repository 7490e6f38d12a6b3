"""The load of the benchmarks works on a real bus, and notices when it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from bench.load import Load, LoadError, Result, Spec
from tests.support.daemon import Daemon

ROOT = Path(__file__).resolve().parents[3]


def spec(bus: Daemon, run: str, *, latencies: bool = False) -> Spec:
    return Spec(
        socket=bus.paths.socket,
        run=run,
        senders=2,
        in_flight=8,
        content_bytes=1024,
        warm_up=0.05,
        seconds=0.2,
        latencies=latencies,
    )


def test_everything_sent_is_accepted_and_received(bus: Daemon) -> None:
    command = [sys.executable, "-m", "bench.load", msgspec.json.encode(spec(bus, "load")).decode()]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    result = msgspec.json.decode(done.stdout.splitlines()[-1], type=Result)
    assert result.received == result.sent >= result.accepted > 0


def test_latencies_are_of_the_measured_seconds(bus: Daemon) -> None:
    with Load(spec(bus, "latencies", latencies=True)) as load:
        result = load.run()
    assert 0 < len(result.latencies_ms) <= result.accepted


def test_an_error_of_the_bus_ends_the_load(bus: Daemon) -> None:
    too_large = msgspec.structs.replace(spec(bus, "large"), content_bytes=65 * 1024)
    with Load(too_large) as load, pytest.raises(LoadError, match="message_too_large"):
        load.run()
