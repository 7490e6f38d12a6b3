"""A real harness program and a second agent talk through the bus."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from agentbus.adapter.tools import INSTRUCTIONS
from agentbus.adapter.wishes import SHOWN_KIB, SHOWN_KIB_ELSEWHERE
from agentbus.config import KIB
from tests.harness.programs import ClaudeCode, Codex, Program, Server
from tests.harness.talk import contents, exchange, impatient, is_gone, next_message
from tests.support.daemon import Daemon, wait
from tests.support.stdio import Adapter


def test_they_talk_both_ways(program: Program, server: Server, bus: Daemon, other: Adapter) -> None:
    with program.begin(server) as harness:
        turn = exchange(harness, harness.turn(), other, "Is anybody there? ✓")
        turn = exchange(harness, turn, other, 'second\nline  \u2028 and \\ "quotes"')
        sessions = {(each["application"], each["session"]) for each in bus.status()["sessions"]}
        if harness.knows_session:
            assert (program.application, harness.session) in sessions
        (adapter,) = harness.adapters()
        turn.say("done")
        assert harness.ends() == 0
        assert wait(lambda: is_gone(adapter), 2)


def test_the_model_is_told_of_the_bus(program: Program, server: Server) -> None:
    with program.begin(server) as harness:
        turn = harness.turn()
        assert {"send", "recv"} <= set(turn.tools)
        asked = repr(program.model.log)
        assert all(line.strip("- ") in asked for line in INSTRUCTIONS.splitlines())
        turn.say("done")
        assert harness.ends() == 0


def test_the_model_sees_why_a_call_failed(program: Program, server: Server) -> None:
    with program.begin(server) as harness:
        harness.turn().call("send", channel="nowhere", content="x")
        turn = harness.turn()
        error = turn.result["error"]
        assert (error["code"], error["retryable"]) == ("not_found", False)
        turn.say("done")
        assert harness.ends() == 0


def stop(bus: Daemon) -> None:
    bus.stop()


def kill(bus: Daemon) -> None:
    bus.kill("supervisor")


@pytest.mark.parametrize("end", [stop, kill])
def test_the_same_process_goes_on_after_the_daemon_was_restarted(
    program: Program,
    server: Server,
    bus: Daemon,
    other: Adapter,
    end: Callable[[Daemon], None],
) -> None:
    with program.begin(server) as harness:
        turn = exchange(harness, harness.turn(), other, "before")
        pids = [each.pid for each in harness.adapters()]
        first = bus.pid("supervisor")
        end(bus)
        turn = exchange(harness, turn, other, "after")
        assert bus.pid("supervisor") != first
        assert [each.pid for each in harness.adapters()] == pids
        turn.say("done")
        assert harness.ends() == 0


def test_a_daemon_that_a_harness_starts_keeps_nothing_of_it(
    program: Program, server: Server, bus: Daemon
) -> None:
    bus.stop()
    with program.begin(server) as harness:
        harness.turn().call("send", channel="general", content="cold")
        turn = harness.turn()
        assert turn.result["seq"] == 1
        daemon = psutil.Process(bus.pid("supervisor"))
        foreign = ("CLAUDE", "CODEX", "ANTHROPIC", "OPENAI", "MCP")
        assert not [name for name in daemon.environ() if name.startswith(foreign)]
        turn.say("done")
        assert harness.ends() == 0
    assert not is_gone(daemon)
    assert bus.status()["state"] == "ready"


def test_a_conversation_that_is_continued_finds_what_was_said_meanwhile(
    program: Program, server: Server, other: Adapter
) -> None:
    if not program.names_sessions:
        pytest.skip("it names no conversation without a hook or a plugin; test_init has them")
    with program.begin(server) as harness:
        exchange(harness, harness.turn(), other, "first").say("done")
        assert harness.ends() == 0
        session = harness.session
    other.call("send", channel="general", content="meanwhile")
    with program.begin(server, session) as harness:
        harness.turn().call("recv", wait_seconds=30)
        turn = harness.turn()
        assert contents(turn) == ["meanwhile"]
        exchange(harness, turn, other, "second").say("done")
        assert harness.ends() == 0
        assert harness.session == session


def test_what_is_more_than_the_model_is_shown_at_once_comes_in_whole_messages(
    program: Program, server: Server, other: Adapter
) -> None:
    sent = [f"{number} " + "long " * 400 for number in range(30)]
    with program.begin(server) as harness:
        turn = exchange(harness, harness.turn(), other, "begin")
        for text in sent:
            other.call("send", channel="general", content=text)
        seen: list[str] = []
        while len(seen) < len(sent):
            turn.call("recv", max_messages=100, wait_seconds=30)
            turn = harness.turn()
            shown = SHOWN_KIB.get(program.application, SHOWN_KIB_ELSEWHERE)
            assert len(json.dumps(turn.result)) > shown * KIB // 2 or seen
            seen += contents(turn)
        assert seen == sent
        turn.say("done")
        assert harness.ends() == 0


def test_a_call_that_the_program_cancels_takes_no_message_with_it(
    program: Program, tapped: Server, tap_log: Path, other: Adapter
) -> None:
    with program.begin(impatient(tapped)) as harness:
        harness.turn().call("recv", wait_seconds=50)
        turn = harness.turn()
        assert "timed out" in turn.results[0]
        assert wait(lambda: "notifications/cancelled" in tap_log.read_text())
        other.call("send", channel="general", content="late")
        turn.call("recv", wait_seconds=1)
        turn = harness.turn()
        assert contents(turn) == ["late"]
        turn.say("done")
        assert harness.ends() == 0


def test_its_adapter_ends_when_the_program_is_killed(program: Program, server: Server) -> None:
    with program.begin(server) as harness:
        harness.turn().call("recv", wait_seconds=50)
        (adapter,) = harness.adapters()
        os.kill(harness.pid, signal.SIGKILL)
        assert wait(lambda: is_gone(adapter), 2)


def test_a_subagent_of_codex_is_a_child_of_its_session(
    codex: Codex, server: Server, other: Adapter
) -> None:
    with codex.begin(server) as harness:
        harness.turn().call("whoami")
        harness.turn().call_own("spawn_agent", message="Say hello.")
        turns = [harness.turn(), harness.turn()]
        parent, child = sorted(turns, key=lambda turn: not turn.results)
        child.call("send", channel="general", content="from the child")
        harness.turn().say("said")
        message = next_message(other)
        assert (message["session"], message["child"]) == (
            harness.session,
            parent.result["agent_id"],
        )
        parent.call("recv", wait_seconds=30)
        assert contents(harness.turn()) == ["from the child"]


def test_two_programs_talk_with_each_other(
    claude: ClaudeCode, codex: Codex, server: Server
) -> None:
    with claude.begin(server) as asking, codex.begin(server) as answering:
        answering.turn().call("whoami")
        turn = answering.turn()
        assert turn.result["session"] == answering.session
        asking.turn().call("send", channel="general", content="What is the answer?")
        asked = asking.turn()
        asked.call("recv", wait_seconds=30)
        turn.call("recv", wait_seconds=30)
        turn = answering.turn()
        assert contents(turn) == ["What is the answer?"]
        turn.call("send", channel="general", content="42", reply_to=asked.result["message_id"])
        turn = answering.turn()
        reply = asking.turn()
        assert contents(reply) == ["42"]
        assert reply.result["messages"][0]["session"] == answering.session
        reply.say("done")
        turn.say("done")
        assert (asking.ends(), answering.ends()) == (0, 0)
