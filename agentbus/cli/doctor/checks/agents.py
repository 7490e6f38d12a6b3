"""Agents: whether their harnesses start the bus, and whether their sessions listen."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from agentbus.cli.doctor.facts import Facts, Harness
from agentbus.cli.doctor.findings import Finding, Findings, of_error, ok, problem, warning
from agentbus.cli.snapshot import Session

CONNECT: Final = "agentbus init --global"
PATIENCE_SECONDS: Final = 600
"""A message that waits so long is not about to be read."""

SOON_SECONDS: Final = 6 * 3600
MANY: Final = 10
"""Findings about sessions that are told one by one."""

NAMED: Final = 5
"""Channels of a list that are named; of the rest only the number is told."""


def harnesses(facts: Facts) -> Findings:
    """Whether each that is found starts `agentbus mcp`, which is there, for this bus."""
    found = facts.harnesses
    if not found:
        yield warning(
            "none of Claude Code, Codex, Gemini CLI and opencode was found for this user",
            "install one, or see docs/how-to/connect.md for any other that speaks MCP",
        )
        return
    used = _used(facts)
    if not any(each.connected or each.error or each.name in used for each in found):
        names = ", ".join(each.title for each in found)
        verb = "start" if len(found) > 1 else "starts"
        yield problem(
            f"no harness knows the bus: {names} {verb} no `agentbus mcp` (what a repository's own "
            "files say is not looked at)",
            CONNECT,
        )
        return
    for each in found:
        if each.name in used and not each.connected and each.error is None:
            yield ok(f"{each.title} has a session attached, by what a repository's own files say")
        else:
            yield from _harness(each, facts)


def _used(facts: Facts) -> set[str]:
    """The programs of sessions that are attached now: they start the bus, wherever that stands."""
    snapshot = facts.bus.snapshot
    return {each.application for each in snapshot.sessions if each.attached} if snapshot else set()


def _harness(harness: Harness, facts: Facts) -> Iterator[Finding]:
    title, again = harness.title, f"{CONNECT} --harness {harness.name}"
    if harness.error is not None:
        yield problem(harness.error.message, f"mend that, then run: {again}")
    elif not harness.connected:
        yield warning(f"{title} does not know the bus: {harness.file} has no server for it", again)
    elif harness.disabled:
        yield problem(
            f"{title} does not start the bus: its server is switched off",
            f"switch `agentbus` on in {harness.file}, or in the program's list of MCP servers",
        )
    elif harness.found is None:
        yield problem(
            f"{title} cannot start the bus: {harness.command} of {harness.file} is no program here",
            again,
        )
    else:
        yield from _entry(harness, facts, again)


def _entry(harness: Harness, facts: Facts, again: str) -> Iterator[Finding]:
    title, well = harness.title, True
    if not harness.same:
        well = False
        yield warning(
            f"{title} starts {harness.found}, which is another installation than this "
            f"({facts.this})",
            again,
        )
    if harness.elsewhere:
        well = False
        yield warning(
            f"{title} meets another bus than this command: {', '.join(harness.elsewhere)} differ",
            f"{again} (with the variables and --config that are to hold)",
        )
    if well:
        yield ok(f"{title} starts {harness.command}")


def hooks(facts: Facts) -> Findings:
    """Whether what tells who calls, and what keeps an agent at work, is installed."""
    for each in facts.harnesses:
        if each.error is not None or not each.connected:
            continue
        if each.lacking:
            yield warning(
                f"{each.title} lacks hooks in {', '.join(each.lacking)}: an agent stops although "
                "messages wait, or its conversation is not recognised",
                f"{CONNECT} --harness {each.name}",
            )
        elif each.passed_over:
            yield warning(
                f"{each.title} passes over the hook in {', '.join(each.passed_over)}, since you "
                "have not trusted it: an agent stops although messages wait",
                "start codex and trust the hook when it asks, or type /hooks there",
            )
        else:
            yield ok(f"{each.title} has its hooks")


def repository(facts: Facts) -> Findings:
    """Whether the file of the repository around can be used."""
    if facts.project is not None:
        yield of_error(facts.project, "correct the file, or run: agentbus init")


def sessions(facts: Facts) -> Findings:
    """Whether those that are attached hear something, and read it."""
    snapshot = facts.bus.snapshot
    if snapshot is None or snapshot.state not in ("ready", "recovering"):
        return
    attached = [each for each in snapshot.sessions if each.attached]
    if not attached:
        yield warning(
            "no session is attached: an agent is seen once it has called a tool of the bus",
            "start a session of your harness, and ask its agent to call `whoami`",
        )
        return
    told = [finding for each in attached for finding in _session(each, facts.now)]
    yield from told[:MANY]
    if len(told) > MANY:
        yield warning(f"{len(told) - MANY:,} more like these", "agentbus status")
    if not told:
        names = ", ".join(each.display_name for each in attached)
        yield ok(f"attached and listening: {names}")


def _session(session: Session, now: float) -> Iterator[Finding]:
    name = session.display_name
    if not session.subscriptions:
        yield warning(
            f"{name} is subscribed to no channel: it hears nothing",
            f"ask {name} to call `subscribe`; a repository's .agentbus.json names channels for all "
            "its sessions (agentbus init)",
        )
    late = [each for each in session.subscriptions if _age(each.oldest_undelivered_at, now)]
    if late:
        count = sum(each.lag for each in late)
        minutes = max(_age(each.oldest_undelivered_at, now) for each in late) // 60
        yield warning(
            f"{count:,} messages wait for {name} in {_named([each.channel for each in late])}, the "
            f"oldest for {minutes:,.0f} min",
            f"ask {name} to call `recv`",
        )
    for each in late:
        if each.expires_at and _seconds(each.expires_at) - now < SOON_SECONDS:
            yield warning(
                f"{name} loses its place in {each.channel} at {each.expires_at}, since it does not "
                "call `recv`",
                f"ask {name} to call `recv`",
            )


def channels(facts: Facts) -> Findings:
    """Whether somebody hears what is sent, where somebody hears anything."""
    snapshot = facts.bus.snapshot
    if snapshot is None or not any(each.attached for each in snapshot.sessions):
        return
    deaf = [
        each.name
        for each in snapshot.channels
        if each.messages and not each.subscribers and each.kind == "ordinary"
    ]
    if deaf:
        yield warning(
            f"nobody is subscribed to {_named(deaf)}: what is sent there is found by `history` and "
            "`search` alone",
            "ask the agents concerned to call `subscribe`",
        )


def _named(names: list[str]) -> str:
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {len(names) - NAMED:,} more" if len(names) > NAMED else shown


def _age(moment: str | None, now: float) -> float:
    """Seconds, where they are many; else 0."""
    if moment is None:
        return 0.0
    age = now - _seconds(moment)
    return age if age >= PATIENCE_SECONDS else 0.0


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
