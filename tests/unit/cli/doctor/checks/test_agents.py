"""What waits for sessions, and for how long."""

from __future__ import annotations

import pytest

from agentbus.cli.doctor.checks import agents
from agentbus.cli.doctor.facts import Bus, Harness
from agentbus.cli.doctor.findings import Result
from agentbus.cli.snapshot import Channel, Session, Snapshot, Subscription


def stamp(minutes: int) -> str:
    """A moment before the noon of the facts."""
    hours, rest = divmod(12 * 60 - minutes, 60)
    return f"2026-11-30T{hours:02d}:{rest:02d}:00.000Z"


def bus(*subscriptions: Subscription, attached: bool = True) -> Bus:
    session = Session("Sam", attached=attached, subscriptions=list(subscriptions))
    return Bus("/s", pid=1, snapshot=Snapshot(state="ready", sessions=[session]))


@pytest.mark.parametrize(
    ("lag", "minutes", "told"), [(0, None, False), (3, 5, False), (3, 30, True)]
)
def test_what_waits_for_long_is_told_and_what_has_just_come_is_not(facts, lag, minutes, told):
    oldest = None if minutes is None else stamp(minutes)
    subscription = Subscription("general", lag=lag, oldest_undelivered_at=oldest)
    [found] = agents.sessions(facts(bus=bus(subscription)))
    assert found.result is (Result.WARNING if told else Result.OK)
    assert ("3 messages wait for Sam in general" in found.found) is told


def test_a_place_that_is_about_to_be_lost_is_told(facts):
    subscription = Subscription(
        "general", lag=1, oldest_undelivered_at=stamp(60), expires_at=stamp(-60)
    )
    told = [each.found for each in agents.sessions(facts(bus=bus(subscription)))]
    assert any("loses its place in general at 2026-11-30T13:00" in each for each in told)


def test_sessions_that_have_gone_do_not_count(facts):
    waiting = Subscription("general", lag=3, oldest_undelivered_at=stamp(60))
    [found] = agents.sessions(facts(bus=bus(waiting, attached=False)))
    assert "no session is attached" in found.found


def test_of_many_channels_some_are_named(facts):
    channels = [Channel(f"c{number}", messages=1) for number in range(8)]
    session = Session("Sam", attached=True)
    snapshot = Snapshot(state="ready", sessions=[session], channels=channels)
    [found] = agents.channels(facts(bus=Bus("/s", pid=1, snapshot=snapshot)))
    assert "c0, c1, c2, c3, c4 and 3 more" in found.found


def test_a_harness_with_a_session_is_connected_wherever_that_stands(facts):
    claude = Harness("claude-code", "Claude Code", "/h/.claude.json")
    [missing] = agents.harnesses(facts(harnesses=[claude]))
    assert (missing.result, missing.do) == (Result.PROBLEM, ("agentbus init --global",))
    session = Session("Sam", application="claude-code", attached=True)
    attached = Bus("/s", pid=1, snapshot=Snapshot(state="ready", sessions=[session]))
    [found] = agents.harnesses(facts(harnesses=[claude], bus=attached))
    assert found.result is Result.OK
    codex = Harness("codex", "Codex", "/h/.codex/config.toml")
    first, second = agents.harnesses(facts(harnesses=[claude, codex], bus=attached))
    assert (first.result, second.result) == (Result.OK, Result.WARNING)


def test_of_many_sessions_that_hear_nothing_some_are_told(facts):
    sessions = [Session(f"S{number}", attached=True) for number in range(30)]
    crowd = Bus("/s", pid=1, snapshot=Snapshot(state="ready", sessions=sessions))
    told = list(agents.sessions(facts(bus=crowd)))
    assert len(told) == agents.MANY + 1
    assert told[-1].found == "20 more like these"
