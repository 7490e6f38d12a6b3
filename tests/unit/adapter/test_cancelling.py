"""A recv that is cancelled at each point of its life: its messages come again or are delivered,
never both or neither."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agentbus.errors import SessionAlreadyConnected, StaleAttachment
from tests.support.adapter_world import World

MESSAGES = ["one", "two", "three"]


def contents(result) -> list[str]:
    return [each["content"] for each in result["messages"]]


def recv(world: World, **arguments) -> int:
    return world.call("recv", **({"wait_seconds": 20} | arguments))


def before_the_daemon_is_there(make) -> tuple[World, int]:
    world = make()
    world.running, world.silent_start = False, True
    world.begin().greet()
    return world, recv(world)


def while_the_daemon_greets(make) -> tuple[World, int]:
    world = make()
    world.answers["hello"] = None
    world.begin().greet()
    return world, recv(world)


def while_it_registers(make) -> tuple[World, int]:
    world = make()
    world.answers["register"] = None
    world.begin().greet()
    return world, recv(world)


def while_another_has_its_session(make) -> tuple[World, int]:
    world = make()
    world.answers["register"] = SessionAlreadyConnected("another has it")
    world.begin().greet()
    return world, recv(world)


def while_it_waits(make) -> tuple[World, int]:
    world = make().begin().greet()
    return world, recv(world)


def while_it_asks_whether_more_is_coming(make) -> tuple[World, int]:
    world = make().begin().greet()
    world.answers["heartbeat"] = None
    return world, recv(world, wait_seconds=0)


def while_the_connection_is_lost(make) -> tuple[World, int]:
    world = make().begin().greet()
    identifier = recv(world)
    world.silent_start = True
    world.lose(running=False)
    return world, identifier


def after_its_claim_went_stale(make) -> tuple[World, int]:
    world = make().begin().greet()
    world.answers["renew"] = StaleAttachment("register again")
    identifier = recv(world)
    world.answers["register"] = None
    world.note("epoch", epoch=world.epoch)
    return world, identifier


def while_its_answer_waits_behind_another(make) -> tuple[World, int]:
    world = make().begin().greet()
    world.deliver(*MESSAGES)
    world.blocked = True
    world.feed("tools/list", "before")
    return world, recv(world)


def while_its_answer_is_the_first_to_be_written(make) -> tuple[World, int]:
    world = make().begin().greet()
    world.deliver(*MESSAGES)
    world.blocked = True
    return world, recv(world)


def while_it_is_answered_anew(make) -> tuple[World, int]:
    """A memory in its answer was changed, so the answer was taken back."""
    world = make().begin().greet()
    world.remember(*MESSAGES)
    world.blocked = True
    identifier = recv(world)
    world.revise(2, "two")
    return world, identifier


def twice(make) -> tuple[World, int]:
    world = make().begin().greet()
    identifier = recv(world)
    world.feed("notifications/cancelled", requestId=identifier)
    return world, identifier


POINTS: list[Callable[..., tuple[World, int]]] = [
    before_the_daemon_is_there,
    while_the_daemon_greets,
    while_it_registers,
    while_another_has_its_session,
    while_it_waits,
    while_it_asks_whether_more_is_coming,
    while_the_connection_is_lost,
    after_its_claim_went_stale,
    while_its_answer_waits_behind_another,
    while_its_answer_is_the_first_to_be_written,
    while_it_is_answered_anew,
    twice,
]


def set_right(world: World) -> None:
    """Whatever was in the way of the call is over."""
    world.blocked = False
    world.write_all()
    world.running = True
    world.silent_start = False
    world.answer_as_usual()
    held, world.held = world.held, []
    for number, method, params in held:
        answer = world.answers[method]
        world.answer(number, answer(params) if callable(answer) else answer)
    world.pass_time(65)


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.__name__)
def test_what_a_recv_that_was_cancelled_held_comes_again_once_and_in_order(make, point) -> None:
    world, identifier = point(make)
    world.feed("notifications/cancelled", requestId=identifier)
    delivered = bool(world.asked("delivered"))
    set_right(world)
    assert all(line.get("id") != identifier for line in world.lines)
    assert not delivered
    assert world.asked("delivered") == []
    if not world.attachments:
        world.call("whoami")
    known = [line["id"] for line in world.lines if "id" in line]
    assert len(known) == len(set(map(str, known)))
    if point not in (
        while_its_answer_waits_behind_another,
        while_its_answer_is_the_first_to_be_written,
        while_it_is_answered_anew,
    ):
        world.deliver(*MESSAGES)
    assert contents(world.now_result("recv")) == MESSAGES
    assert world.asked("delivered")[-1]["positions"] == [[1, 3]]


@pytest.mark.parametrize("late", ["at once", "after another call"])
def test_once_its_last_byte_is_out_a_cancellation_is_nothing(make, late) -> None:
    world = make().begin().greet()
    world.deliver(*MESSAGES)
    identifier = recv(world)
    if late == "after another call":
        world.now_result("whoami")
    world.feed("notifications/cancelled", requestId=identifier)
    assert contents(world.result(identifier)) == MESSAGES
    assert world.asked("delivered")[-1]["positions"] == [[1, 3]]
    assert contents(world.now_result("recv")) == []
