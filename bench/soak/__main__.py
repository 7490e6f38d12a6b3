"""`python -m bench.soak [--sessions N] [--minutes M] [--every SECONDS] [--seed SEED]`.

Sessions work through real adapters while one process of the bus, or an adapter, is killed every few
seconds. Then all is held against each other. Exit code 0 where nothing differs and nothing grew.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from agentbus.config import MIB
from bench.redis import Redis, socket_of
from bench.soak import audit
from bench.soak.disturb import Disturber
from bench.soak.members import Books, Session
from bench.soak.watch import Growth, Watch
from tests.support.daemon import Daemon

SETTINGS: Final[dict[str, Any]] = {
    "sqlite_budget_mib": 64,
    "redis_budget_mib": 64,
    "cleanup_interval_seconds": 5,
    "send_messages_per_second": 10_000,
    "send_kib_per_second": 65_536,
}
"""Small budgets, so that most of what is sent is evicted meanwhile."""

QUIET_SECONDS: Final = 60.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs it and prints what it came to."""
    options = _options(arguments)
    with Daemon(**SETTINGS) as bus:
        bus.environment["TMPDIR"] = os.path.join(bus.directory, "temporary")  # is watched, too
        os.mkdir(bus.environment["TMPDIR"])
        bus.start()
        soak = Soak(bus, options)
        soak.run()
        differences = list(soak.differences())
        growth = soak.growth()
    grown = [each for each in growth if each.is_growth]
    _report(soak, differences, growth)
    return 1 if differences or grown else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--every", type=float, default=15.0, help="seconds between two kills")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    return parser.parse_args(arguments)


class Soak:
    """One run."""

    def __init__(self, bus: Daemon, options: argparse.Namespace) -> None:
        self.bus = bus
        self.books = Books()
        self.seed = options.seed
        numbers = range(options.sessions)
        self.sessions = [Session(bus, self.books, number, options.seed) for number in numbers]
        self.disturber = Disturber(bus, self.sessions, options.seed)
        self._watch = Watch(bus.directory, {"redis": SETTINGS["redis_budget_mib"] * MIB})
        self._seconds = options.minutes * 60
        self._every = options.every
        self._ending = threading.Event()
        self._began = time.monotonic()

    def run(self) -> None:
        """Until the time is over and everybody has everything. Raises what a session raised."""
        for session in self.sessions:
            session.join_all()
        self._began = time.monotonic()
        try:
            self._together(lambda session: session.work(self._ending.is_set), self._disturb)
            self._together(lambda session: session.drain(), lambda: None)
        finally:
            self._ending.set()

    def differences(self) -> Iterator[str]:
        """What does not agree; asked once, and the sessions leave meanwhile."""
        for session in self.sessions:
            yield from session.faults
        status = self.bus.wait_until(_is_quiet)
        if status["warnings"]:
            say(f"warnings: {status['warnings']}")
        stored = audit.read_database(self.bus.paths.database)
        yield from audit.database(stored, self.books)
        server = Redis(socket_of(self.bus.paths))
        yield from audit.redis(stored, server)
        server.close()
        yield from audit.index(stored, self.bus.paths.index)
        for session in self.sessions:
            yield from audit.session(session, self.books, stored)
            session.end()

    def growth(self) -> list[Growth]:
        """Of every kind of process."""
        return self._watch.growth(self._seconds)

    # ---- steps

    def _together(self, work: Any, meanwhile: Any) -> None:
        threads = [threading.Thread(target=work, args=(each,)) for each in self.sessions]
        for thread in threads:
            thread.start()
        meanwhile()
        self._ending.set()
        for thread in threads:
            thread.join()
        for session in self.sessions:
            if session.failure is not None:
                raise session.failure

    def _disturb(self) -> None:
        strike_at = self._every
        while (elapsed := time.monotonic() - self._began) < self._seconds:
            if elapsed >= strike_at and elapsed < self._seconds - self._every:
                self.disturber.strike()
                strike_at += self._every
            memory = self._watch.look(elapsed, self._processes())
            self._progress(elapsed, memory)
            if any(session.failure is not None for session in self.sessions):
                return
            self._ending.wait(1.0)

    def _processes(self) -> dict[str, list[int]]:
        pids = [each.pid for each in self.sessions]
        found: dict[str, list[int]] = {"adapter": [pid for pid in pids if pid is not None]}
        try:
            for item in self.bus.status()["processes"]:
                found.setdefault(item["name"], []).append(item["pid"])
        except (OSError, EOFError):
            pass  # between two daemons
        return found

    def _progress(self, elapsed: float, memory: int) -> None:
        shown = sum(len(session.shown) for session in self.sessions)
        kills = sum(self.disturber.kills.values())
        say(
            f"{elapsed:5.0f} s  accepted {len(self.books.accepted):7}  shown {shown:8}  "
            f"killed {kills:3}  memory {memory >> 20:4} MiB",
            over=True,
        )


def _is_quiet(status: dict[str, Any]) -> bool:
    commit = status["sqlite"]["commit_id"]
    return bool(
        status["state"] == "ready"
        and status["redis"]["commit_id"] == commit
        and (status["index"] is None or status["index"]["commit_id"] == commit)
    )


def say(text: str, *, over: bool = False) -> None:
    """A line on stderr; one that is written over the last on a terminal."""
    over = over and sys.stderr.isatty()
    sys.stderr.write(f"\r\x1b[K{text}" if over else f"{text}\n")
    sys.stderr.flush()


def _report(soak: Soak, differences: Sequence[str], growth: Sequence[Growth]) -> None:
    shown = sum(len(session.shown) for session in soak.sessions)
    searches = sum(session.searches for session in soak.sessions)
    kills = ", ".join(f"{name} {count}" for name, count in sorted(soak.disturber.kills.items()))
    lines = [
        f"seed {soak.seed}: {len(soak.books.accepted)} accepted, {shown} shown, "
        f"{len(soak.books.revisions)} memories, {searches} searches",
        f"killed: {kills or 'nothing'}",
        *(_growth_line(each) for each in growth),
        f"differences: {len(differences)}",
        *differences[:50],
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def _growth_line(each: Growth) -> str:
    (before, after), (fewer, more) = each.memory, each.files
    verdict = "  GREW" if each.is_growth else ""
    return (
        f"{each.name}: {before / 2**20:.1f} to {after / 2**20:.1f} MiB, "
        f"{fewer} to {more} files{verdict}"
    )


if __name__ == "__main__":
    sys.exit(main())
