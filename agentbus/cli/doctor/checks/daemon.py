"""The daemon: whether one runs, whether it is the right one, how it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentbus.cli.doctor.facts import Bus, Facts
from agentbus.cli.doctor.findings import Finding, Findings, of_error, ok, problem, warning
from agentbus.cli.snapshot import Snapshot

STOP: Final = "agentbus stop"
AGAIN: Final = "the next tool call of an agent starts it"
LEAP_SECONDS: Final = 300
SLACK_SECONDS: Final = 2


def daemon(facts: Facts) -> Findings:
    """Whether one runs, and answers."""
    bus = facts.bus
    if bus.other is not None:
        yield problem(
            f"the data directory is in use by another daemon (process {bus.other_pid} of "
            f"{bus.other}): none can be started here",
            f"AGENTBUS_RUNTIME_DIR={bus.other} agentbus stop",
            "or set another data_directory for this bus",
        )
    elif bus.pid is None and bus.silence is not None:
        yield of_error(bus.silence)
    elif bus.pid is None and bus.failure is not None:
        yield problem(
            f"no daemon runs; the last one failed: {bus.failure}",
            f"mend that, then run: agentbus daemon ({AGAIN}, too)",
        )
    elif bus.pid is None:
        yield warning(f"no daemon runs; {AGAIN}, or you do", "agentbus daemon")
    elif bus.snapshot is None:
        yield _silent(bus)
    else:
        yield ok(f"process {bus.pid} answers")


def _silent(bus: Bus) -> Finding:
    why = bus.silence.message if bus.silence is not None else "it says nothing that can be read"
    return problem(
        f"the daemon (process {bus.pid}) runs and does not answer: {why}",
        f"{STOP} (it ends also one that cannot be asked; {AGAIN})",
    )


def upgrade(facts: Facts) -> Findings:
    """Whether it is of this installation, as it is on the disk now, with these settings."""
    bus, program = facts.bus, facts.program
    if bus.snapshot is None:
        return
    began = facts.now - (bus.snapshot.uptime_s if bus.age is None else bus.age)
    if bus.refusal is not None:
        yield problem(bus.refusal.message, STOP)
    elif bus.snapshot.version != program.version:
        yield warning(
            f"the daemon is agentbus {bus.snapshot.version}, this command {program.version}; they "
            f"understand each other, but the daemon lacks what is new",
            f"{STOP} ({AGAIN})",
        )
    elif program.changed_at > began + SLACK_SECONDS:
        yield warning(
            "files of agentbus are newer than the daemon: what runs is not what is installed",
            f"{STOP} ({AGAIN})",
        )
    else:
        yield ok(f"the daemon is agentbus {program.version}, as installed, with these settings")


def state(facts: Facts) -> Findings:
    """Whether it takes messages, and what it says of itself."""
    snapshot = facts.bus.snapshot
    if snapshot is None:
        return
    if snapshot.state == "ready" and not snapshot.reasons:
        yield ok("ready")
    yield from _reasons(snapshot)
    for said in snapshot.warnings:
        yield warning(said)


def _reasons(snapshot: Snapshot) -> Iterator[Finding]:
    wait = "agentbus status --watch (it goes on trying by itself; this shows when it is ready)"
    if snapshot.state == "ready":
        for reason in snapshot.reasons:
            yield warning(f"ready, with restrictions: {reason}", "agentbus status")
    elif snapshot.state == "recovering":
        for reason in snapshot.reasons or ["it does not say why"]:
            yield problem(f"no message is taken now: {reason}", wait)
    else:
        why = f" ({'; '.join(snapshot.reasons)})" if snapshot.reasons else ""
        yield warning(f"the daemon is {snapshot.state}{why}", wait)


def clock(facts: Facts) -> Findings:
    """Whether the wall clock was set while the daemon ran, or since the bus was written."""
    bus, found = facts.bus, facts.database
    if bus.snapshot is not None and bus.age is not None:
        leap = bus.snapshot.uptime_s - bus.age
        if abs(leap) > LEAP_SECONDS:
            yield warning(
                f"the clock was set {_way(leap)} while the daemon ran: ages of messages and "
                "cursors are off by that; the order of messages is not",
                f"look at the clock (date); then {STOP} ({AGAIN})",
            )
    if found is not None and found.written_at > facts.now + LEAP_SECONDS:
        yield warning(
            f"the clock is behind: {found.path} was written {_shown(found.written_at - facts.now)} "
            "from now; retention by age waits until the clock is there again",
            "set the clock (date)",
        )


def _way(leap: float) -> str:
    return f"{_shown(abs(leap))} {'ahead' if leap > 0 else 'back'}"


def _shown(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
