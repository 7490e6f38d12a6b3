"""What a harness sees: the time of tool calls, through adapters on pipes.

    python -m bench.calls [--directory DIR]

This is the column that `docs/comparison.md` has of agentbus: a plain JSON-RPC client, a fresh bus,
contents of 1 KB, each call awaited before the next.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import psutil  # type: ignore[import-untyped]

from bench.bus import Bus, Place
from bench.start import Adapter

CONTENT = "x " * 500
SENDS = 500
SENDERS = 4
STORED = 5000
SETTINGS = {"send_messages_per_second": 10000, "send_kib_per_second": 65536}


def call(adapter: Adapter, tool: str, **arguments: Any) -> dict[str, Any]:
    """A tool's structured result. Raises RuntimeError where it is an error."""
    content: dict[str, Any] = adapter.call(tool, **arguments)["structuredContent"]
    return content


def timed(action: Callable[[], object]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1000


def say(what: str, value: float, unit: str = "ms") -> None:
    sys.stdout.write(f"{what:54} {value:10.2f} {unit}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.calls")
    parser.add_argument("--directory", default=tempfile.gettempdir())
    directory = parser.parse_args(arguments).directory
    cold(directory)
    with Bus(directory, SETTINGS) as bus:
        place = bus.place
        adapter = started(place, "another adapter, to its first result")
        say("adapter, resident", psutil.Process(adapter.pid).memory_info().rss / 1e6, "MB")
        held = sum(memory(each["pid"]) for each in bus.status()["processes"])
        say("daemon with Redis, fresh, what is shared counted once", held / 1e6, "MB")
        listed = adapter.ask("tools/list", {})
        say("tools/list", len(msgspec.json.encode(listed)) / 1000, "KB")
        latency(adapter)
        throughput(place)
        reading(place, adapter)
        searching(adapter)
        adapter.end()
    return 0


def memory(pid: int) -> int:
    """Proportional bytes of a process; on macOS, which has no such figure, resident ones."""
    info = psutil.Process(pid).memory_full_info()
    held: int = getattr(info, "pss", info.rss)
    return held


def cold(directory: str) -> None:
    """The daemon is started by the first call."""
    place = Place(directory, SETTINGS)
    try:
        started(place, "without a daemon, to the first result").end()
    finally:
        stop = [sys.executable, "-m", "agentbus", "stop"]
        subprocess.run(stop, env=place.environment, check=True, stdout=subprocess.DEVNULL)
        place.remove()


def started(place: Place, what: str) -> Adapter:
    adapter = Adapter(place)
    call(adapter, "whoami")
    say(what, adapter.seconds() * 1000)
    return adapter


def latency(adapter: Adapter) -> None:
    """One at a time."""
    times = [
        timed(lambda: call(adapter, "send", channel="general", content=CONTENT))
        for _ in range(SENDS)
    ]
    say("send, median", statistics.median(times))
    say("send, 99th percentile", statistics.quantiles(times, n=100)[98])


def throughput(place: Place) -> None:
    """Several adapters, each one at a time."""
    others = [Adapter(place) for _ in range(SENDERS)]
    for other in others:
        call(other, "whoami")

    def send(sender: Adapter) -> None:
        for _ in range(SENDS):
            call(sender, "send", channel="general", content=CONTENT)

    threads = [threading.Thread(target=send, args=(other,)) for other in others]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say(f"{SENDERS} senders", SENDERS * SENDS / (time.perf_counter() - began), "messages/s")
    for other in others:
        other.end()


def reading(place: Place, adapter: Adapter) -> None:
    """A hundred that wait, in one call, or two where the last of them is late."""
    reader = Adapter(place)
    call(reader, "recv")
    for _ in range(100):
        call(adapter, "send", channel="general", content=CONTENT)
    began = time.perf_counter()
    read = 0
    while read < 100:
        told = call(reader, "recv", max_messages=100, max_kib=1024, wait_seconds=5)
        read += len(told["messages"])
    say("read 100", (time.perf_counter() - began) * 1000)
    reader.end()


def searching(adapter: Adapter) -> None:
    """Two words, one of them in every tenth message."""
    for number in range(STORED):
        content = f"{CONTENT} rare{number % 10} needle"
        call(adapter, "send", channel="general", content=content)
    times = [
        timed(partial(call, adapter, "search", query=f"needle rare{number % 10}", limit=10))
        for number in range(50)
    ]
    say(f"search of {STORED} and more, median", statistics.median(times))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
