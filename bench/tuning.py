"""What the settings of space give: how much goes, who misses it, what a send waits, what is left of
throughput; over budget, free target, interval and retention.

Old messages are made by moving what is stored into the past while no daemon runs: a quarter of it
is older than the shorter retention, half of it becomes so while it is measured. Senders fill the
rest meanwhile, and go on.
"""

from __future__ import annotations

import itertools
import selectors
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

import msgspec

from agentbus.config import MIB
from bench.accept import SETTINGS
from bench.bus import Bus, Peer, request
from bench.figures import Chart, Figure, Point, figure, percentile, ratios
from bench.load import CHANNEL, HEARTBEAT_SECONDS, Connection, Deliver, Note, Sender, Spec
from bench.recover import fill
from bench.runs import Plan

CONTENT_BYTES: Final = 4_096
SENDERS: Final = 4
IN_FLIGHT: Final = 16
ROW_BYTES: Final = CONTENT_BYTES + 700
ROOM_MIB: Final = 16_384
HOUR_MS: Final = 3_600_000
NAP_SECONDS: Final = 2.0
AWAKE_SECONDS: Final = 0.5
"""The sleepy subscriber reads nothing for longer than a small budget lasts, again and again."""

ACROSS: Final = "free target, %"


class Setting(msgspec.Struct, frozen=True):
    """One place of the grid."""

    budget_mib: int
    free_percent: int
    interval_seconds: int
    retention_hours: int

    @property
    def line(self) -> str:
        """Its place but for the free target."""
        return f"{self.budget_mib} MiB, {self.interval_seconds} s, {self.retention_hours} h"


class Seen(msgspec.Struct):
    """What came of one setting."""

    accepted: float = 0.0
    evicted: float = 0.0
    lost: float = 0.0
    gaps: float = 0.0
    pause: float = 0.0
    slow: float = 0.0


CHARTS: Final[dict[str, tuple[str, str]]] = {
    "accepted": ("tuning, accepted", "messages/s"),
    "evicted": ("tuning, evicted of accepted", "%"),
    "lost": ("tuning, missed by a reader that naps", "% of accepted"),
    "gaps": ("tuning, gaps told to it", "a second"),
    "slow": ("tuning, accept, 99th percentile", "ms"),
    "pause": ("tuning, longest wait for an accept", "ms"),
}


def tuning(plan: Plan) -> list[Figure]:
    """The peer of each budget and free target is a bus that has room for everything."""
    figures: list[Figure] = []
    for budget, free in itertools.product(plan.grid_budgets, plan.grid_free):
        settings = [
            Setting(budget, free, interval, retention) for interval, retention in plan.grid_ages
        ]
        plain: list[Seen] = []
        seen: list[list[Seen]] = [[] for _ in settings]
        for _ in range(plan.grid_repeats):
            plan.say(f"{budget} MiB, {free} % free: a bus with room")
            plain.append(_measured(plan, _roomy(settings[0]), budget))
            for setting, found in zip(settings, seen, strict=True):
                plan.say(f"{setting.line}, {free} % free")
                found.append(_measured(plan, setting, budget))
        for setting, found in zip(settings, seen, strict=True):
            figures += _figures(setting, found, plain)
    return figures


def _roomy(setting: Setting) -> Setting:
    return msgspec.structs.replace(setting, budget_mib=ROOM_MIB, retention_hours=8_760)


def _figures(setting: Setting, seen: Sequence[Seen], plain: Sequence[Seen]) -> list[Figure]:
    figures = []
    name = f"{setting.line}, {setting.free_percent} % free"
    for field, (title, unit) in CHARTS.items():
        point = Point(Chart(title, ACROSS), setting.line, setting.free_percent)
        samples = [getattr(each, field) for each in seen]
        figures.append(figure(f"{title}: {name}", samples, unit, point))
    title = "tuning, accepted of a bus with room"
    shares = ratios([each.accepted for each in seen], [each.accepted for each in plain])
    point = Point(Chart(title, ACROSS), setting.line, setting.free_percent)
    return [*figures, figure(f"{title}: {name}", shares, "x", point)]


def _measured(plan: Plan, setting: Setting, filled_mib: int) -> Seen:
    """`filled_mib` is the budget of which a part is stored before."""
    room = {"sqlite_budget_mib": ROOM_MIB, "redis_budget_mib": ROOM_MIB}
    bus = Bus(plan.base, {**SETTINGS, **room})
    with bus:
        stored = filled_mib * MIB * plan.grid_filled / ROW_BYTES
        fill(plan, bus, int(stored), CONTENT_BYTES)
        bus.keep()
    _age(bus.place.paths.database, _shortest(plan) * HOUR_MS, plan.grid_seconds)
    bus.place.configure(
        {
            **SETTINGS,
            **room,
            "sqlite_budget_mib": setting.budget_mib,
            "cleanup_free_percent": setting.free_percent,
            "cleanup_interval_seconds": setting.interval_seconds,
            "message_retention_hours": setting.retention_hours,
        }
    )
    with bus, closing(_Traffic(bus)) as traffic:
        return traffic.run(plan.grid_seconds)


def _shortest(plan: Plan) -> int:
    return min(retention for _, retention in plan.grid_ages)


def _age(database: str, retention_ms: int, seconds: float) -> None:
    """Evenly from half of the measured time too old to one and a half times too young."""
    oldest = time.time() * 1000 - retention_ms - seconds * 500
    with closing(sqlite3.connect(database)) as connection, connection:
        first, last = connection.execute("SELECT min(id), max(id) FROM messages").fetchone()
        connection.execute(
            "UPDATE messages SET sent_at = CAST(? + (id - ?) * ? AS INTEGER)",
            (oldest, first, seconds * 2000 / (last - first + 1)),
        )


class _Sleepy(Connection):
    """A subscriber that counts what it missed."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec, "sleepy", [CHANNEL])
        self.gaps = 0
        self.lost = 0
        self._decoder = msgspec.json.Decoder(Note)

    def take(self) -> None:
        """Reads what has come and reports its last position."""
        epoch, through, number = "", 0, 0
        for line in self.read().splitlines():
            note = self._decoder.decode(line)
            deliver = note.params
            if note.method == "deliver" and isinstance(deliver, Deliver):
                epoch, through, number = deliver.epoch, deliver.through, deliver.subscription
                self._count(deliver.gaps)
        if epoch:
            params = {"attachment": self.attachment, "epoch": epoch}
            report = {**params, "positions": [(number, through)]}
            self.socket.sendall(request("delivered", "delivered", report) + b"\n")

    def _count(self, gaps: Sequence[msgspec.Raw]) -> None:
        for gap in gaps:
            self.gaps += 1
            self.lost += msgspec.json.decode(gap)["lost"]


class _Traffic:
    """Senders, the sleepy subscriber, and a look at the status when all is over."""

    def __init__(self, bus: Bus) -> None:
        path = bus.place.paths.socket
        spec = Spec(path, "tuning", SENDERS, IN_FLIGHT, CONTENT_BYTES, 0.0, 0.0)
        self._status = Peer(path)
        self._sleepy = _Sleepy(spec)
        self._senders = [Sender(spec, number) for number in range(SENDERS)]
        self._awake = False

    def close(self) -> None:
        """Hangs up."""
        for each in (self._status, self._sleepy, *self._senders):
            each.socket.close()

    def run(self, seconds: float) -> Seen:
        """Until then, with as many sends in flight as there may be."""
        waits: list[float] = []
        began = now = beat = time.perf_counter()
        with selectors.DefaultSelector() as selector:
            for sender in self._senders:
                selector.register(sender.socket, selectors.EVENT_READ, sender)
                sender.since = now
                sender.send(IN_FLIGHT)
            while now - began < seconds:
                self._nap_or_wake(selector, now - began)
                for key, _ in selector.select(0.01):
                    if key.data is None:
                        self._sleepy.take()
                    else:
                        waits.append(self._answered(key.data))
                now = time.perf_counter()
                if now - beat > HEARTBEAT_SECONDS:
                    beat = now
                    for each in (self._sleepy, *self._senders):
                        each.heartbeat()
        return self._seen(waits, now - began)

    def _nap_or_wake(self, selector: selectors.BaseSelector, since: float) -> None:
        awake = since % (NAP_SECONDS + AWAKE_SECONDS) < AWAKE_SECONDS
        if awake and not self._awake:
            selector.register(self._sleepy.socket, selectors.EVENT_READ, None)
        elif self._awake and not awake:
            selector.unregister(self._sleepy.socket)
        self._awake = awake

    def _answered(self, sender: Sender) -> float:
        """Milliseconds since this sender was answered last."""
        now = time.perf_counter()
        waited, sender.since = (now - sender.since) * 1000, now
        sender.send(sender.answered())
        return waited

    def _seen(self, waits: Sequence[float], seconds: float) -> Seen:
        """What went before the senders began, as it was too old, counts too."""
        status: dict[str, Any] = self._status.call("status")["status"]
        evicted = status["totals"]["evicted"]
        accepted = sum(sender.accepted for sender in self._senders)
        return Seen(
            accepted=accepted / seconds,
            evicted=evicted / accepted * 100,
            lost=self._sleepy.lost / accepted * 100,
            gaps=self._sleepy.gaps / seconds,
            pause=max(waits),
            slow=percentile(waits, 99),
        )
