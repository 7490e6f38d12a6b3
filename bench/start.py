"""How fast an adapter starts and how much it holds, with and without a running daemon."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from typing import IO, Any, Final

import msgspec
import psutil  # type: ignore[import-untyped]

from bench.bus import Bus, Place
from bench.figures import Figure, at_most, figure, ratios
from bench.runs import Plan

MOST_STARTS: Final = 2.0
MOST_MIB: Final = 20.0
MOST_COLD_SECONDS: Final = 3.0
REVISION: Final = "2025-11-25"
FLOOR: Final = [sys.executable, "-c", "import msgspec"]


class Adapter:
    """`agentbus mcp` on pipes, asked one thing at a time."""

    def __init__(self, place: Place) -> None:
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "agentbus", "mcp"],
            env=place.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.pid = self._process.pid
        self._last = 0
        client = {"name": "bench", "version": "1"}
        self.ask(
            "initialize", {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client}
        )
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a request."""
        return self.finish(self.begin(method, params))

    def begin(self, method: str, params: Mapping[str, Any]) -> int:
        """Writes a request; its number is for `finish`."""
        self._last += 1
        self._write({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        return self._last

    def finish(self, number: int) -> dict[str, Any]:
        """The result of a request; answers to others before it are gone."""
        while True:
            line = _pipe(self._process.stdout).readline()
            if not line:
                raise RuntimeError("the adapter ended before it answered")
            answer = msgspec.json.decode(line)
            if answer.get("id") == number:
                if "result" not in answer or answer["result"].get("isError"):
                    raise RuntimeError(f"refused: {line.decode()}")
                result: dict[str, Any] = answer["result"]
                return result

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def seconds(self) -> float:
        """Since the process was asked for."""
        return time.perf_counter() - self.began

    def end(self) -> None:
        """Closes its stdin and waits for it."""
        _pipe(self._process.stdin).close()
        self._process.wait(10)
        _pipe(self._process.stdout).close()

    def _write(self, document: Mapping[str, Any]) -> None:
        stdin = _pipe(self._process.stdin)
        stdin.write(msgspec.json.encode(document) + b"\n")
        stdin.flush()


def warm(plan: Plan) -> list[Figure]:
    """Adapters against a running daemon, each after a run of the floor."""
    floor: list[float] = []
    listed: list[float] = []
    whole: list[float] = []
    resident: list[float] = []
    with Bus(plan.base, {}) as bus:
        _whole_adapter(bus.place)  # compiles and caches what was never imported here
        for repeat in range(plan.starts):
            plan.say(f"adapter start {repeat + 1} of {plan.starts}")
            floor.append(_floor())
            answered, ended, mib = _whole_adapter(bus.place)
            listed.append(answered)
            whole.append(ended)
            resident.append(mib)
    return [
        at_most("adapter, first tools/list, of the floor", ratios(listed, floor), "x", MOST_STARTS),
        figure("adapter, first tools/list", listed, "ms"),
        figure("adapter, from start to end of process", whole, "ms"),
        figure("floor: python -c 'import msgspec'", floor, "ms"),
        at_most("adapter, resident after its first calls", resident, "MiB", MOST_MIB),
    ]


def cold(plan: Plan) -> list[Figure]:
    """The first tool call where no daemon runs, and nothing has ever run."""
    took: list[float] = []
    for repeat in range(plan.repeats + 2):
        plan.say(f"cold start {repeat + 1} of {plan.repeats + 2}")
        place = Place(plan.base, {})
        adapter = Adapter(place)
        try:
            adapter.call("whoami")
            took.append(adapter.seconds())
        finally:
            adapter.end()
            _stop(place)
    return [at_most("first tool call without a daemon", took, "s", MOST_COLD_SECONDS)]


def _floor() -> float:
    began = time.perf_counter()
    subprocess.run(FLOOR, check=True)
    return (time.perf_counter() - began) * 1000


def _whole_adapter(place: Place) -> tuple[float, float, float]:
    """Milliseconds to the first tools/list and to the end of the process, MiB resident."""
    adapter = Adapter(place)
    try:
        adapter.ask("tools/list", {})
        listed = adapter.seconds() * 1000
        asked = time.perf_counter()
        adapter.call("whoami")
        adapter.call("send", channel="general", content="hello")
        adapter.call("recv")
        mib = psutil.Process(adapter.pid).memory_info().rss / 2**20
        paused = time.perf_counter() - asked
    finally:
        adapter.end()
    return listed, (adapter.seconds() - paused) * 1000, mib


def _stop(place: Place) -> None:
    command = [sys.executable, "-m", "agentbus", "stop", "--config", place.config_path]
    subprocess.run(command, env=place.environment, check=True, stdout=subprocess.DEVNULL)
    place.remove()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
