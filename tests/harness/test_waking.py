"""Programs that `agentbus init` has connected are kept at work while messages wait."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.harness.conftest import installed
from tests.harness.model import Model
from tests.harness.programs import (
    ClaudeCode,
    Codex,
    Conversation,
    GeminiCli,
    OpenCode,
    Program,
)
from tests.harness.talk import contents, exchange
from tests.support.daemon import Daemon
from tests.support.stdio import Adapter

STOPPING = (ClaudeCode, Codex, GeminiCli)
"""Those that ask a hook before the agent stops."""

SECRET = "nobody is told this before recv"


@pytest.fixture(params=STOPPING, ids=lambda kind: kind.application)
def program(request: pytest.FixtureRequest, home: Path, model: Model, bus: Daemon) -> Program:
    """Connected."""
    kind: type[Program] = request.param
    made = kind(installed(kind), home, model)
    made.init(bus.environment)
    return made


def last_asked(harness: Conversation) -> str:
    """The newest request to the model."""
    return repr(harness.program.model.log[-1])


def test_an_agent_that_stops_while_messages_wait_goes_on_and_reads_them(
    program: Program, other: Adapter
) -> None:
    with program.begin(None) as harness:
        turn = exchange(harness, harness.turn(), other, "first")
        other.call("send", channel="general", content=SECRET)
        turn.say("done")
        turn = harness.turn()
        assert "1 message is undelivered on agentbus" in last_asked(harness)
        assert SECRET not in last_asked(harness)
        turn.call("recv")
        turn = harness.turn()
        assert contents(turn) == [SECRET]
        turn.say("read")
        assert harness.ends() == 0


def test_it_is_kept_once_a_turn_also_where_it_does_not_read(
    program: Program, other: Adapter
) -> None:
    with program.begin(None) as harness:
        turn = exchange(harness, harness.turn(), other, "first")
        other.call("send", channel="general", content=SECRET)
        turn.say("done")
        harness.turn().say("I will not read")
        assert harness.ends() == 0


def waiting(bus: Daemon) -> str:
    """`agentbus wait` as a line for a shell."""
    names = ("AGENTBUS_RUNTIME_DIR", "AGENTBUS_CONFIG")
    given = " ".join(f"{name}={bus.environment[name]}" for name in names)
    return f"{given} {sys.executable} -m agentbus wait --timeout 30"


SHELLS = {ClaudeCode: "Bash", GeminiCli: "run_shell_command", OpenCode: "bash"}
"""With the tool that runs a command."""


@pytest.mark.parametrize("kind", SHELLS, ids=lambda kind: kind.application)
def test_an_agent_waits_in_its_shell_for_what_comes(
    kind: type[Program], home: Path, model: Model, bus: Daemon, other: Adapter
) -> None:
    program = kind(installed(kind), home, model)
    program.init(bus.environment)
    with program.begin(None) as harness:
        turn = exchange(harness, harness.turn(), other, "first")
        turn.call_own(SHELLS[kind], command=waiting(bus), description="Wait for messages")
        other.call("send", channel="general", content=SECRET)
        turn = harness.turn()
        assert "1 undelivered: general 1" in turn.results[0]
        turn.call("recv")
        turn = harness.turn()
        assert contents(turn) == [SECRET]
        turn.say("done")
        assert harness.ends() == 0


@pytest.mark.parametrize("unconfined", [False, True])
def test_codex_waits_in_its_shell_unless_its_sandbox_keeps_it_from_the_bus(
    codex: Codex, bus: Daemon, other: Adapter, unconfined: bool
) -> None:
    codex.unconfined = unconfined
    codex.init(bus.environment)
    with codex.begin(None) as harness:
        turn = exchange(harness, harness.turn(), other, "first")
        turn.call_own("exec_command", cmd=waiting(bus), yield_time_ms=25000)
        other.call("send", channel="general", content=SECRET)
        turn = harness.turn()
        told = "1 undelivered: general 1" if unconfined else "agentbus: unavailable: "
        assert told in turn.results[0]
        turn.call("recv")
        turn = harness.turn()
        assert contents(turn) == [SECRET]
        turn.say("done")
        assert harness.ends() == 0
