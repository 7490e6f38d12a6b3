"""Links come and go, and the gateway with them."""

from __future__ import annotations

import pytest

from agentbus.gateway.daemon_links import READY_SECONDS
from agentbus.gateway.events import Serving
from agentbus.wire.events import Closed, Opened, Received, TurnEnded, Woke
from agentbus.wire.links import (
    CONTROL,
    GATEWAY_WRITER,
    PROJECTOR_GATEWAY,
    ChannelCreate,
    GatewayHello,
    RedisDown,
    RedisUp,
    Register,
    Release,
    Renew,
)
from tests.support.gateway_rig import Rig, top


def serving(rig: Rig) -> int:
    return sum(isinstance(effect, Serving) for effect in rig.effects)


def test_the_first_word_to_a_writer_asks_for_a_number() -> None:
    rig = Rig(start=False)
    rig.event(Opened(GATEWAY_WRITER))
    assert rig.frames == [GatewayHello(0)]
    rig.event(Closed(GATEWAY_WRITER))
    rig.event(Opened(GATEWAY_WRITER))
    assert rig.frames == [GatewayHello(0), GatewayHello(0)]


def test_a_restarted_writer_is_told_the_number_and_then_asked_everything_again() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.ask(connection, "renew", attachment=attachment)
    rig.ask(connection, "register", application="x", session="2")
    rig.ask(connection, "channel.create", attachment=attachment, name="c")
    rig.ask(connection, "release", attachment=attachment)
    asked = list(rig.frames)
    assert [type(frame) for frame in asked] == [Renew, Register, ChannelCreate, Release]
    rig.restart_writer(welcome=False)
    assert rig.frames == [GatewayHello(1), *asked]


def test_what_is_asked_without_a_writer_waits_for_it() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.event(Closed(GATEWAY_WRITER))
    request = rig.ask(connection, "renew", attachment=attachment)
    assert rig.frames == []
    rig.sleep(20)
    rig.call(connection, "heartbeat")
    rig.restart_writer()
    assert len(rig.framed(Renew)) == 1
    late = rig.ask(connection, "renew", attachment=attachment)
    rig.event(Closed(GATEWAY_WRITER))
    rig.sleep(25)
    rig.call(connection, "heartbeat")
    rig.sleep(6)
    for waiting in (request, late):
        assert rig.result(connection, waiting)["code"] == "unavailable"


def test_it_serves_once_messages_pass() -> None:
    rig = Rig(start=False)
    rig.event(Opened(GATEWAY_WRITER))
    rig.welcome()
    assert serving(rig) == 0
    rig.project()
    assert serving(rig) == 1
    rig.project(ready=False)
    rig.project()
    rig.restart_writer()
    assert serving(rig) == 1


def test_it_serves_before_the_writer_is_late() -> None:
    rig = Rig(start=False)
    rig.project()
    assert serving(rig) == 0
    rig.welcome()
    assert serving(rig) == 1


def test_a_long_recovery_does_not_keep_it_from_serving() -> None:
    rig = Rig(start=False)
    rig.event(Opened(GATEWAY_WRITER))
    rig.welcome()
    rig.sleep(READY_SECONDS + 0.1)
    assert serving(rig) == 1
    rig.project()
    assert serving(rig) == 1


def test_streams_are_read_where_the_projector_says() -> None:
    rig = Rig()
    assert rig.redis == "/run/redis.sock"
    rig.project(ready=False, socket=None)
    assert rig.redis is None
    rig.project(socket="/run/another.sock")
    assert rig.redis == "/run/another.sock"


def test_epochs_begin_with_rebuilds_and_not_with_restarts_of_the_projector() -> None:
    rig = Rig()
    connection = rig.connect()
    rig.project(top(1, 1), boot="b", rebuilds=0)
    rig.project(top(1, 1), boot="b", rebuilds=1)
    rig.project(top(1, 1), boot="b", rebuilds=1)
    rig.project(top(1, 1), boot="c", rebuilds=1)
    rig.project(top(1, 1), boot="d", rebuilds=0)
    assert [note["epoch"] for note in rig.notes(connection, "epoch")] == ["1.1", "1.2"]


def test_epochs_are_told_to_those_who_have_greeted() -> None:
    rig = Rig()
    connection = rig.connect(greet=False)
    rig.project(rebuilds=1)
    assert rig.inbox[connection] == []


def test_what_is_told_to_everybody_needs_nothing_done() -> None:
    rig = Rig()
    rig.event(Received(CONTROL, RedisUp("/run/r.sock", 5, "valkey", "9.1")))
    rig.event(Received(CONTROL, RedisDown("killed")))
    assert rig.event(TurnEnded()) == []
    assert rig.event(Woke()) == []


def test_a_frame_of_another_link_is_a_fault_of_ours() -> None:
    rig = Rig()
    with pytest.raises(TypeError, match="Renew"):
        rig.event(Received(PROJECTOR_GATEWAY, Renew(1, "1.1")))


def test_answers_to_what_nobody_asked_are_nothing() -> None:
    rig = Rig()
    rig.refuse(999, "internal")
    assert rig.inbox == {}


def test_the_same_events_have_the_same_effects() -> None:
    def story() -> list[object]:
        rig = Rig(prefetch_messages=5)
        members = [rig.member(number) for number in range(1, 5)]
        for number, member in enumerate(members):
            rig.send(*member, f"m{number}")
        rig.show(1, 9)
        rig.project(top(1, 9), rebuilds=1)
        rig.disconnect(members[0][0])
        rig.sleep(31)
        return list(rig.effects)

    assert story() == story()
