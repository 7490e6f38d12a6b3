"""One crash of one process, at every step that a message takes: it arrives, once, in order."""

from __future__ import annotations

from typing import Final

import pytest

from agentbus.runtime.faults import Point
from tests.support.simulation.clients import Result
from tests.support.simulation.processes import Process
from tests.support.simulation.world import World

CHANNEL: Final = "general"
STEPS: Final = 32
"""About what a message takes from the call of send until it is handed off."""

PATIENCE: Final = 15.0
"""Virtual seconds for an answer: none may have to wait for a timeout of the bus."""

PROCESSES: Final = ("writer", "gateway", "projector", "redis", "supervisor", "sender", "receiver")


def find(world: World, name: str) -> Process:
    sender, receiver = (agent.client.adapter for agent in world.agents)
    adapters = {"sender": sender, "receiver": receiver}
    process = adapters[name] if name in adapters else world.machine.find(name)
    assert process is not None
    return process


def insist(world: World, message_id: str) -> list[Result]:
    """Sends until it is accepted; the answer, once it is there."""
    answers: list[Result] = []
    message = {"channel": CHANNEL, "content": message_id, "message_id": message_id}

    def told(result: Result | None) -> None:
        if result is not None and "error" not in result:
            world.truth.accept(message_id, CHANNEL, result)
            answers.append(result)
        else:
            world.scheduler.after(0.1, again)

    def again() -> None:
        if world.agents[0].client.call("send", message, told) is None:
            world.scheduler.after(0.1, again)

    again()
    return answers


def send(world: World, message_id: str) -> None:
    answers = insist(world, message_id)
    world.wait(lambda: bool(answers), f"sending {message_id}", 60)


def skip(world: World, steps: int) -> None:
    until = world.scheduler.steps + steps
    world.wait(lambda: world.scheduler.steps >= until, "so many steps", 60)


@pytest.mark.parametrize("name", PROCESSES)
def test_a_message_survives_a_kill_at_any_step_of_its_way(name):
    for steps in range(STEPS):
        with World(seed=steps, agents=2) as world:
            world.start()
            world.agents[1].receiver.begin()
            send(world, "before")
            answers = insist(world, "during")
            skip(world, steps)
            find(world, name).kill()
            world.wait(lambda answers=answers: bool(answers), "the answer", PATIENCE)
            send(world, "after")
            world.settle()
            stored = [row.message_id for row in world.truth.streams[CHANNEL]]
            assert stored == ["before", "during", "after"]


def test_a_writer_that_dies_between_commit_and_answer_has_stored_the_message_once():
    with World(seed=1, agents=2) as world:
        world.start()
        world.agents[1].receiver.begin()
        writer = world.machine.application("writer")
        writer.dies_at = Point.COMMITTED
        (answer,) = wait_for(world, insist(world, "m"))
        assert answer["duplicate"]
        world.settle()
        assert list(world.truth.rows) == ["m"]


def test_what_an_adapter_reported_before_it_died_is_not_shown_to_its_successor():
    for steps in range(STEPS):
        with World(seed=steps, agents=2) as world:
            world.start()
            send(world, "m")
            world.agents[1].receiver.begin()
            world.wait(lambda world=world: world.truth.until("agent-1", CHANNEL) == 1, "recv", 60)
            world.agents[1].client.adapter.kill()
            skip(world, steps)
            world.settle()
            assert world.truth.shown["agent-1", CHANNEL].life == 1


def test_a_restart_of_everything_loses_nothing():
    with World(seed=1, agents=2) as world:
        world.start()
        world.agents[1].receiver.begin()
        send(world, "before")
        for name in PROCESSES:
            find(world, name).kill()
        send(world, "after")
        world.settle()
        assert [row.message_id for row in world.truth.streams[CHANNEL]] == ["before", "after"]


def test_an_orderly_stop_is_not_undone_before_somebody_wants_the_daemon():
    with World(seed=1, agents=2) as world:
        world.start()
        send(world, "before")
        world.machine.daemon.stop()
        world.scheduler.run_until(lambda: False, 30)
        assert not world.serves
        send(world, "after")
        world.agents[1].receiver.begin()
        world.settle()


@pytest.mark.parametrize("also", [None, "gateway", "projector"])
def test_while_no_writer_can_open_the_database_callers_are_told_so_and_later_it_goes_on(also):
    for steps in range(0, STEPS, 8):
        with World(seed=steps, agents=2) as world:
            world.start()
            world.agents[1].receiver.begin()
            send(world, "before")
            world.machine.disk.break_opens()
            for name in filter(None, ("writer", also)):
                find(world, name).kill()
                skip(world, steps)
            told: list[Result] = []
            message = {"channel": CHANNEL, "content": "during", "message_id": "during"}
            world.agents[0].client.call("send", message, told.append)
            world.wait(lambda told=told: bool(told), "the refusal", PATIENCE)
            error = told[0]["error"]
            assert error["code"] in ("storage_error", "unavailable")
            assert "open" in error["message"]
            assert error["retryable"]
            world.machine.disk.mend()
            send(world, "during")
            world.settle()
            stored = [row.message_id for row in world.truth.streams[CHANNEL]]
            assert stored == ["before", "during"]


def wait_for(world: World, answers: list[Result]) -> list[Result]:
    world.wait(lambda: bool(answers), "the answer", PATIENCE)
    return answers
