"""The directory of agents."""

from __future__ import annotations

from typing import Any

import pytest

from agentbus.wire.links import DiscoverAsk, Discovered, Refused, Release
from agentbus.writer import directory
from tests.support.writer_world import START, World


def discover(world: World, attachment: Any, agent: str | None = None) -> dict[str, list[Any]]:
    (answer,) = world.ask(DiscoverAsk(world.ref(), attachment, agent))
    assert isinstance(answer, Discovered), answer
    return {known.agent: known.sessions for known in answer.agents}


def test_agents_are_listed_with_their_sessions(world: World) -> None:
    sam = world.register("n1", agent="Sam", repository="tmi")
    world.register("n1", child="c1", parent="n1", role="implement 804")
    eve = world.register("n2", agent="Eve", application="claude-code")
    world.time += 60
    world.ask(Release(world.ref(), eve.attachment))
    world.time += 60
    found = discover(world, sam.attachment)
    assert list(found) == ["Sam", "Eve"], "whoever is here comes first"
    child, root = found["Sam"]
    assert (root.display_name, root.application, root.session) == ("Sam", "codex", "n1")
    assert (root.repository, root.attached, root.last_seen) == ("tmi", True, START + 120)
    assert (child.display_name, child.child, child.parent) == ("Sam-implement-804", "c1", "n1")
    assert child.role == "implement 804"
    (gone,) = found["Eve"]
    assert (gone.application, gone.attached, gone.last_seen) == ("claude-code", False, START + 60)


def test_one_agent_is_found_by_its_name_alone(world: World) -> None:
    sam = world.register("n1", agent="Sam")
    world.register("n2", agent="Sam")
    world.register("n3", agent="Eve")
    assert [known.display_name for known in discover(world, sam.attachment, "Sam")["Sam"]] == [
        "Sam2",
        "Sam",
    ]
    assert discover(world, sam.attachment, "Nobody") == {}


def test_an_agent_outlives_its_sessions(world: World) -> None:
    sam = world.register("n1", agent="Sam")
    with world.store.transaction():
        world.store.people.create_agent("Old", None, 1)
    assert discover(world, sam.attachment)["Old"] == []


def test_who_asks_has_to_be_attached(world: World) -> None:
    (answer,) = world.ask(DiscoverAsk(world.ref(), world.attachment(), None))
    assert isinstance(answer, Refused)
    assert answer.failure.code == "stale_attachment"


def test_of_many_sessions_the_latest_are_listed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "SESSIONS", 3)
    sam = world.register("root", agent="Sam")
    for number in range(6):
        world.time += 1
        eve = world.register(f"n{number}", agent="Sam")
        world.ask(Release(world.ref(), eve.attachment))
    found = discover(world, sam.attachment)["Sam"]
    assert [known.session for known in found] == ["root", "n5", "n4"]


def test_an_answer_has_room_for_so_much(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "BYTES", 1000)
    sam = world.register("root", agent="Sam")
    for number in range(6):
        world.register(f"n{number}", agent=f"Agent{number}")
    found = discover(world, sam.attachment)
    assert len(found) == 7
    assert sum(len(sessions) for sessions in found.values()) == 3


def test_looking_up_uses_indexes(world: World) -> None:
    from agentbus.store.write import people

    for statement in (people.SELECT_DETACHED_OF, people.SELECT_IDLE):
        plan = world.rows("EXPLAIN QUERY PLAN " + statement, *[1] * statement.count("?"))
        steps = [row[3] for row in plan]
        assert "SEARCH" in steps[0], steps
        assert not any("TEMP B-TREE" in step for step in steps), steps
