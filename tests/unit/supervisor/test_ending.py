"""Resets, and services that run only when they are needed."""

from __future__ import annotations

import pytest

from agentbus.supervisor import events as ev
from agentbus.supervisor.ending import TURNS, Phase
from agentbus.supervisor.services import REDIS
from agentbus.wire.events import Exit
from agentbus.wire.links import ResetRequested, SearchBackend, Stop
from tests.unit.supervisor.test_core import Shell, of, told

ORDER = ("gateway", "writer", "projector", REDIS)


@pytest.fixture
def shell():
    return Shell().up()


def forked(effects):
    return {effect.name for effect in of(ev.Fork, effects)}


def end_all(shell):
    return [effect for name in ORDER for effect in shell.die(name, 0)]


def test_only_an_ended_daemon_has_nowhere_to_turn():
    assert set(TURNS) == set(Phase)
    assert [phase for phase, turns in TURNS.items() if not turns] == [Phase.ENDED]


def test_the_indexer_runs_once_the_projector_asks_for_it(shell):
    assert "indexer" not in shell.living
    assert forked(shell.say("projector", SearchBackend(indexer=True))) == {"indexer"}
    assert not forked(shell.say("projector", SearchBackend(indexer=True)))


def test_the_indexer_gets_the_other_end_of_the_gateways_link(shell):
    (fork,) = of(ev.Fork, shell.say("projector", SearchBackend(indexer=True)))
    assert [(end.link, end.number, end.owner) for end in fork.ends] == [
        ("gateway-indexer", 1, "indexer")
    ]


def test_an_indexer_that_dies_comes_back_and_one_that_is_not_needed_does_not(shell):
    shell.say("projector", SearchBackend(indexer=True))
    assert forked(shell.die("indexer")) == {"indexer"}
    asked = shell.say("projector", SearchBackend(indexer=False))
    assert told(asked, "indexer", Stop)
    assert not forked(shell.die("indexer", 0))
    assert not forked(shell.wait(10.0))


def test_a_reset_removes_the_data_when_all_are_gone_and_starts_anew(shell):
    assert told(shell.say("gateway", ResetRequested()), "gateway", Stop)
    effects = end_all(shell)
    assert len(of(ev.Wipe, effects)) == 1
    assert forked(effects) == {"projector", "writer", "gateway"}
    assert of(ev.StartRedis, effects)
    assert shell.code is None


def test_a_reset_keeps_the_listener_and_asks_for_no_snapshot(shell):
    shell.say("gateway", ResetRequested())
    effects = [effect for name in ORDER for effect in shell.die(name, 0)]
    assert not of(ev.CloseListener, effects)
    assert [stop.snapshot for stop in told(effects, "projector", Stop)] == [False]


def test_an_indexer_that_was_running_runs_again_after_a_reset(shell):
    shell.say("projector", SearchBackend(indexer=True))
    shell.say("gateway", ResetRequested())
    shell.die("gateway", 0)
    shell.die("indexer", 0)
    effects = [effect for name in ORDER[1:] for effect in shell.die(name, 0)]
    assert "indexer" in forked(effects)


def test_a_second_reset_while_one_goes_on_is_the_same_one(shell):
    shell.say("gateway", ResetRequested())
    shell.say("gateway", ResetRequested())
    assert len(of(ev.Wipe, end_all(shell))) == 1


def test_a_stop_during_a_reset_removes_the_data_and_ends(shell):
    shell.say("gateway", ResetRequested())
    shell.handle(ev.StopSignal(15))
    effects = end_all(shell)
    assert len(of(ev.Wipe, effects)) == 1
    assert not forked(effects)
    assert of(Exit, effects) == [Exit(0)]


def test_a_reset_during_a_stop_is_no_reset(shell):
    shell.handle(ev.StopSignal(15))
    shell.say("gateway", ResetRequested())
    effects = end_all(shell)
    assert not of(ev.Wipe, effects)
    assert shell.code == 0


def test_data_that_cannot_be_removed_stop_the_daemon_with_the_reason(shell):
    shell.unremovable = "bus.sqlite3: Read-only file system"
    shell.say("gateway", ResetRequested())
    effects = end_all(shell)
    (report,) = of(ev.ReportFailure, effects)
    assert report.failure.code == "storage_error"
    assert "Read-only file system" in report.failure.message
    for name in [*ORDER]:
        if name in shell.living:
            shell.die(name, 0)
    assert shell.code == 1
