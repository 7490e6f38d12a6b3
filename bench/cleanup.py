"""What senders notice of a cleanup: the slowest accepts during one, against those after it."""

from __future__ import annotations

import time
from typing import Any, Final

from agentbus.config import MIB
from bench.accept import IN_FLIGHT, SENDERS, SETTINGS
from bench.bus import Bus, Peer
from bench.figures import Figure, at_most, figure, percentile, ratios
from bench.load import Sender, Spec
from bench.recover import LARGE, fill
from bench.runs import Plan

MOST_RATIO: Final = 3.0
FREE_PERCENT: Final = 25
PROBED: Final = 500
"""Messages by which the bytes of one are found out."""

SMALLEST_MIB: Final = 64
SPARE: Final = 2 * SENDERS * IN_FLIGHT
"""Messages that still fit before the measured sends begin: what fills is not to begin a cleanup."""

LOOK_SECONDS: Final = 0.1
"""Between two looks at how much was evicted, of both halves of the measurement."""

LONGEST_SECONDS: Final = 300.0


def cleanup(plan: Plan) -> list[Figure]:
    """One send in flight. It fills the budget, so that a quarter of what is stored goes, and the
    samples are those from the first look that saw something evicted to the last; then as many
    seconds on the same bus while nothing is evicted."""
    during, after, middle, quiet, pause, evicted, seconds = [], [], [], [], [], [], []
    budget = _budget(plan)
    settings = {**SETTINGS, **LARGE, "sqlite_budget_mib": budget}
    with Bus(plan.base, {**settings, "cleanup_free_percent": FREE_PERCENT}) as bus:
        for repeat in range(plan.repeats):
            plan.say(f"run {repeat + 1} of {plan.repeats}, {budget} MiB")
            _fill(plan, bus)
            spec = Spec(bus.place.paths.socket, f"cleanup{repeat}", 1, 1, plan.filled_bytes, 0, 0)
            with _Watched(spec) as watched:
                busy = watched.while_evicting()
                calm = watched.for_seconds(max(busy.seconds, plan.latency_seconds))
            during.append(percentile(busy.took, 99))
            after.append(percentile(calm.took, 99))
            middle.append(percentile(busy.took, 50))
            quiet.append(percentile(calm.took, 50))
            pause.append(max(busy.took))
            evicted.append(float(busy.evicted))
            seconds.append(busy.seconds)
    name = "accept while a cleanup goes on"
    return [
        at_most(f"{name}, 99th percentile, of without", ratios(during, after), "x", MOST_RATIO),
        figure(f"{name}, 99th percentile", during, "ms"),
        figure("the same without, 99th percentile", after, "ms"),
        figure(f"{name}, median", middle, "ms"),
        figure("the same without, median", quiet, "ms"),
        figure(f"{name}, slowest", pause, "ms"),
        figure("evicted by a cleanup", evicted, "messages"),
        figure("it took", seconds, "s"),
    ]


def _budget(plan: Plan) -> int:
    """MiB that as many messages fill as are to be stored."""
    with Bus(plan.base, {**SETTINGS, **LARGE}) as bus:
        held = fill(plan, bus, PROBED, plan.filled_bytes)
        each = bus.status()["sqlite"]["logical_bytes"] / held
    return max(SMALLEST_MIB, int(plan.filled * each / MIB))


def _fill(plan: Plan, bus: Bus) -> None:
    """Until little is free; nearer and nearer, as not all messages are of one size."""
    held = fill(plan, bus, PROBED, plan.filled_bytes)
    while True:
        budget = bus.status()["budgets"]["sqlite"]
        fit = (budget["limit"] - budget["used"]) * held // budget["used"]
        missing = fit * 9 // 10 - SPARE
        if missing < SPARE // 8:
            return
        held = fill(plan, bus, held + missing, plan.filled_bytes)


class _Part:
    """Samples in milliseconds, of so many seconds, and what went meanwhile."""

    def __init__(self, took: list[float], seconds: float, evicted: int) -> None:
        self.took = took
        self.seconds = seconds
        self.evicted = evicted


class _Watched:
    """A sender with one in flight, and looks at the status between its sends."""

    def __init__(self, spec: Spec) -> None:
        self._sender = Sender(spec, 0)
        self._peer = Peer(spec.socket)

    def __enter__(self) -> _Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self._sender.socket.close()
        self._peer.socket.close()

    def while_evicting(self) -> _Part:
        """Raises TimeoutError where none begins, or it does not end."""
        first = last = self._evicted()
        took: list[float] = []
        began = ended = deadline = time.perf_counter()
        deadline += LONGEST_SECONDS
        while time.perf_counter() < deadline:
            looked = time.perf_counter()
            samples = self._send(LOOK_SECONDS)
            now = self._evicted()
            if now > last:
                began = began if took else looked
                took += samples
                ended = time.perf_counter()
            elif took:
                return _Part(took, ended - began, last - first)
            last = now
        raise TimeoutError("no cleanup began, or it did not end")

    def for_seconds(self, seconds: float) -> _Part:
        """Whatever happens."""
        before = self._evicted()
        took: list[float] = []
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            took += self._send(LOOK_SECONDS)
            self._evicted()
        return _Part(took, time.perf_counter() - began, self._evicted() - before)

    def _send(self, seconds: float) -> list[float]:
        took: list[float] = []
        began = now = time.perf_counter()
        while now - began < seconds:
            self._sender.send(1)
            while not self._sender.answered():
                pass
            before, now = now, time.perf_counter()
            took.append((now - before) * 1000)
        return took

    def _evicted(self) -> int:
        status: dict[str, Any] = self._peer.call("status")["status"]
        return int(status["totals"]["evicted"])
