"""Whose calls they are, in programs that `agentbus init` has connected."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.conftest import installed
from tests.harness.model import Model, Turn
from tests.harness.programs import ClaudeCode, Conversation, OpenCode
from tests.harness.talk import contents, next_message
from tests.support.daemon import Daemon
from tests.support.stdio import Adapter


@pytest.fixture
def claude(home: Path, model: Model) -> ClaudeCode:
    """In the home that the test has."""
    return ClaudeCode(installed(ClaudeCode), home, model)


def whoami(harness: Conversation, turn: Turn) -> tuple[dict[str, object], Turn]:
    """What the bus says, and the turn after it."""
    turn.call("whoami")
    turn = harness.turn()
    return turn.result, turn


def test_after_a_clear_claude_code_is_a_new_session(
    claude: ClaudeCode, bus: Daemon, other: Adapter
) -> None:
    claude.talks = True
    claude.init(bus.environment)
    with claude.begin(None) as harness:
        harness.prompt("first")
        before, turn = whoami(harness, harness.turn())
        (adapter,) = harness.adapters()
        turn.say("done")
        harness.prompt("/clear")
        other.call("send", channel="general", content="for the one before")
        harness.prompt("second")
        after, turn = whoami(harness, harness.turn())
        assert after["agent"] == before["agent"]
        assert after["session"] not in (before["session"], None)
        assert after["session"] == harness.latest_session
        assert [each.pid for each in harness.adapters()] == [adapter.pid]
        other.call("send", channel="general", content="for both")
        turn.call("recv", wait_seconds=30)
        turn = harness.turn()
        assert contents(turn) == ["for both"]
        turn.say("done")
        harness.hang_up()
        assert harness.ends() == 0


def test_a_subagent_of_claude_code_is_a_child_with_a_name_of_its_own(
    claude: ClaudeCode, bus: Daemon, other: Adapter
) -> None:
    claude.init(bus.environment)
    with claude.begin(None) as harness:
        parent, turn = whoami(harness, harness.turn())
        turn.call_own(
            "Agent", description="Look", prompt="Say hello.", subagent_type="general-purpose"
        )
        turns = [harness.turn(), harness.turn()]
        mine, beneath = sorted(turns, key=lambda turn: not turn.results)
        child, turn = whoami(harness, beneath)
        assert (child["session"], child["agent"]) == (parent["session"], parent["agent"])
        assert child["child"]
        assert child["display_name"] == f"{parent['display_name']}-general-purpose"
        turn.call("send", channel="general", content="from the child")
        turn = harness.turn()
        message = next_message(other)
        assert (message["sender"], message["child"]) == (child["display_name"], child["child"])
        again, mine = whoami(harness, mine)
        assert again == parent
        mine.call("recv", wait_seconds=30)
        mine = harness.turn()
        assert contents(mine) == ["from the child"]


def test_two_sessions_in_one_repository_are_one_agent_with_two_names(
    claude: ClaudeCode, bus: Daemon
) -> None:
    claude.init(bus.environment)
    with Model() as model, claude.begin(None) as one:
        twin = ClaudeCode(claude.executable, claude.home, model)
        with twin.begin(None) as two:
            first, turn = whoami(one, one.turn())
            second, other_turn = whoami(two, two.turn())
            assert first["agent"] == second["agent"]
            assert {first["session"], second["session"]} == {one.session, two.session}
            names = sorted(str(each["display_name"]) for each in (first, second))
            assert names == [first["agent"], f"{first['agent']}2"]
            other_turn.call("send", channel="general", content="from the other")
            two.turn().say("done")
            assert two.ends() == 0
        turn.call("recv", wait_seconds=30)
        turn = one.turn()
        assert contents(turn) == ["from the other"]
        turn.say("done")
        assert one.ends() == 0


def test_a_subagent_of_opencode_is_a_child_of_its_session(
    home: Path, model: Model, bus: Daemon
) -> None:
    program = OpenCode(installed(OpenCode), home, model)
    program.init(bus.environment)
    with program.begin(None) as harness:
        parent, turn = whoami(harness, harness.turn())
        assert parent["session"] == harness.session
        turn.call_own("task", description="Look", prompt="Say hello.", subagent_type="general")
        child, turn = whoami(harness, harness.turn())
        assert child["session"] == parent["session"]
        assert child["child"] not in (None, parent["session"])
        turn.say("said")
        again, turn = whoami(harness, harness.turn())
        assert again == parent
        turn.say("done")
        assert harness.ends() == 0
