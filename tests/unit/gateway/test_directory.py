"""The directory of agents, where it may be read."""

from __future__ import annotations

from agentbus.wire.links import DiscoverAsk, Discovered, KnownAgent, KnownSession
from tests.support.gateway_rig import Rig


def test_agents_come_with_their_sessions() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = rig.ask(connection, "discover", attachment=attachment, agent="Sam")
    frame = rig.frame(DiscoverAsk)
    assert (frame.attachment, frame.agent) == (attachment, "Sam")
    root = KnownSession("Sam", "codex", "r", None, None, None, "tmi", True, 1_764_000_000.25)
    child = KnownSession("Sam-test", "codex", "r", "c", "r", "test", None, False, 0.0)
    rig.outcomes(Discovered(frame.ref, [KnownAgent("Sam", [root, child])]))
    (agent,) = rig.result(connection, request)["agents"]
    assert agent == {
        "agent": "Sam",
        "sessions": [
            {
                "display_name": "Sam",
                "application": "codex",
                "session": "r",
                "attached": True,
                "last_seen": "2025-11-24T16:00:00.250Z",
                "repository": "tmi",
            },
            {
                "display_name": "Sam-test",
                "application": "codex",
                "session": "r",
                "attached": False,
                "last_seen": "1970-01-01T00:00:00.000Z",
                "child": "c",
                "parent": "r",
                "role": "test",
            },
        ],
    }


def test_where_the_setting_is_off_it_is_refused() -> None:
    rig = Rig(discovery_enabled=False)
    connection, attachment = rig.member(1)
    error = rig.call(connection, "discover", attachment=attachment)
    assert error["code"] == "discovery_disabled"
    assert "discovery_enabled" in error["message"]
    assert rig.framed(DiscoverAsk) == []


def test_everybody_is_asked_for_by_default_and_a_refusal_is_passed_on() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = rig.ask(connection, "discover", attachment=attachment)
    frame = rig.frame(DiscoverAsk)
    assert frame.agent is None
    rig.refuse(frame.ref, "not_found")
    assert rig.result(connection, request)["code"] == "not_found"


def test_a_name_that_is_none_is_refused() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    error = rig.call(connection, "discover", attachment=attachment, agent="a\nb")
    assert error["code"] == "invalid_argument"
