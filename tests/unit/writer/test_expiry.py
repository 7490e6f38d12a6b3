"""Cursors that run out, and what is forgotten in the end."""

from __future__ import annotations

import pytest

from agentbus.errors import StorageFailed
from agentbus.model.ids import Seq, SubscriptionId
from agentbus.model.ports import Instant
from agentbus.wire.events import Closed, WakeAt, Woke
from agentbus.wire.links import (
    GATEWAY_WRITER,
    CursorsExpired,
    ExpiredInfo,
    Registered,
    Release,
    Renew,
    Report,
    Subscribe,
)
from agentbus.writer import expiry
from tests.support.writer_world import World

HOUR = 3600.0


def markers(world: World) -> list[int]:
    return [row[0] for row in world.rows("SELECT id FROM subscriptions ORDER BY id")]


def look(world: World) -> list[CursorsExpired]:
    world.time += expiry.LOOK_SECONDS
    world.handle(Woke())
    return world.take(CursorsExpired)


def test_an_attached_session_is_told_once_when_its_cursors_run_out(world: World) -> None:
    sam = world.register(channels=["x", "y"])
    world.time += 71 * HOUR
    assert look(world) == []
    world.ask(Subscribe(world.ref(), sam.attachment, "y", None))
    world.time += HOUR
    (told,) = look(world)
    assert told == CursorsExpired(
        sam.attachment,
        [ExpiredInfo(sam.subscriptions[0].id, "x", sam.subscriptions[0].channel_id, Seq(0))],
    )
    assert look(world) == []
    (renewed,) = world.ask(Renew(world.ref(), sam.attachment))
    assert [info.channel for info in renewed.subscriptions] == ["y"]


def test_it_wakes_up_for_that_while_somebody_is_attached(world: World) -> None:
    sam = world.register()
    for _ in range(30):
        before = world.time
        assert world.wake()
        assert world.time - before <= expiry.LOOK_SECONDS
    world.ask(Release(world.ref(), sam.attachment))
    look(world)
    assert world.core._expiry.at is None


def test_it_is_told_again_by_the_next_writer(world: World) -> None:
    sam = world.register()
    world.time += 72 * HOUR
    (told,) = look(world)
    world.restart()
    look(world)
    told_again = world.core._loaded().attached[sam.attachment].told
    assert told_again == {marker.id for marker in told.expired}


def test_without_a_gateway_it_waits(world: World) -> None:
    world.register()
    world.handle(Closed(GATEWAY_WRITER))
    world.time += 72 * HOUR
    assert look(world) == []
    world.replace_gateway()
    resumed = world.register()
    assert [marker.channel for marker in resumed.expired] == ["general", "memory"]
    assert look(world) == []


def test_a_resumed_session_hears_of_what_ran_out_and_nothing_restarts(world: World) -> None:
    sam = world.register(channels=["x", "y"])
    world.ask(world.append(sam.attachment, "a", channel="x"))
    world.ask(Release(world.ref(), sam.attachment))
    world.time += 72 * HOUR
    resumed = world.register()
    assert resumed.subscriptions == []
    assert [(marker.channel, marker.position) for marker in resumed.expired] == [("x", 0), ("y", 0)]
    (again,) = world.ask(world.registration(attachment=resumed.attachment))
    assert again.expired == resumed.expired


def test_an_adapter_that_comes_back_by_itself_renews_nothing(world: World) -> None:
    sam = world.register(channels=["x"])
    for _ in range(3):
        world.time += 20 * HOUR
        world.ask(Release(world.ref(), sam.attachment))
        sam = world.register(again=True)
        assert len(sam.subscriptions) == 1
    world.time += 12 * HOUR
    world.ask(Release(world.ref(), sam.attachment))
    assert [marker.channel for marker in world.register().expired] == ["x"]


def test_a_resumed_session_lives_on(world: World) -> None:
    sam = world.register(channels=["x"])
    for _ in range(3):
        world.time += 71 * HOUR
        world.ask(Release(world.ref(), sam.attachment))
        sam = world.register()
        assert not sam.expired
        assert len(sam.subscriptions) == 1


def test_a_marker_goes_when_it_is_reported(world: World) -> None:
    sam = world.register(channels=["x", "y"])
    world.time += 72 * HOUR
    (told,) = look(world)
    marker, other = told.expired
    _report(world, sam, marker.id, 7)
    assert markers(world) == [marker.id, other.id], "that report was of something else"
    _report(world, sam, marker.id, marker.position)
    assert markers(world) == [other.id]
    world.ask(Release(world.ref(), sam.attachment))
    assert [left.id for left in world.register().expired] == [other.id]


def _report(world: World, sam: Registered, number: SubscriptionId, position: int) -> None:
    world.ask(Report(world.ref(), sam.attachment, [(number, Seq(position))]))


def test_a_marker_goes_after_720_hours_held_or_not(world: World) -> None:
    held = world.register("held", channels=["x"])
    gone = world.register("gone", channels=["y"])
    world.ask(Release(world.ref(), gone.attachment))
    world.time += (72 + 720) * HOUR - 2 * HOUR
    look(world)
    assert len(markers(world)) == 2
    world.time += 2 * HOUR
    look(world)
    assert markers(world) == []
    (subscribed,) = world.ask(Subscribe(world.ref(), held.attachment, "x", None))
    assert (subscribed.created, subscribed.expired_from) == (True, None)


def test_a_session_is_forgotten_with_its_last_marker_and_its_number_does_not_return(
    world: World,
) -> None:
    sam = world.register("old", channels=["x"])
    world.ask(Release(world.ref(), sam.attachment))
    world.time += (72 + 720) * HOUR
    look(world)
    assert world.rows("SELECT count(*) FROM sessions") == [(0,)]
    fresh = world.register("old", channels=["x"])
    assert not fresh.resumed
    assert fresh.session_id > sam.session_id
    assert fresh.agent == sam.agent


def test_a_clock_that_leaps_has_nothing_forgotten_for_an_hour(world: World) -> None:
    sam = world.register("old", channels=["x"])
    world.ask(Release(world.ref(), sam.attachment))
    world.time += 73 * HOUR
    look(world)
    real = world.now
    world.now = lambda: Instant(real().monotonic, real().wall + 721 * HOUR)
    look(world)
    world.time += 0.9 * HOUR
    look(world)
    assert world.rows("SELECT native FROM sessions") == [("old",)]
    resumed = world.register("old")
    assert [each.channel for each in resumed.expired] == ["x"]
    world.ask(Release(world.ref(), resumed.attachment))
    world.time += 0.2 * HOUR
    look(world)
    assert markers(world) == []


def test_a_session_with_a_cursor_or_an_attachment_is_kept(world: World) -> None:
    world.register("attached", channels=[])
    left = world.register("left", channels=[])
    world.ask(Release(world.ref(), left.attachment))
    world.time += 700 * HOUR
    kept = world.register("kept", channels=["x"])
    world.ask(Release(world.ref(), kept.attachment))
    world.time += 21 * HOUR
    look(world)
    found = world.rows("SELECT native FROM sessions ORDER BY native")
    assert found == [("attached",), ("kept",)]


def test_much_is_forgotten_a_part_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "MOST", 3)
    for number in range(7):
        sam = world.register(f"n{number}", channels=["x"])
        world.ask(Release(world.ref(), sam.attachment))
    world.time += (72 + 720) * HOUR
    left = []
    for _ in range(4):
        look(world)
        left.append(world.rows("SELECT count(*) FROM sessions")[0][0])
    assert left == [4, 1, 0, 0]
    assert markers(world) == []


def test_it_does_not_look_again_and_again_while_the_state_is_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sam = world.register()
    with monkeypatch.context() as patch:
        for place, name in ((world.store.rows, "append"), (world.store.bus, "meta")):
            patch.setattr(place, name, failing)
        world.ask(world.append(sam.attachment, "a"))
    look(world)
    asked = world.core.handle(Woke(), world.now())
    assert all(effect.when > world.time for effect in asked if isinstance(effect, WakeAt))


def failing(*_: object) -> None:
    raise StorageFailed("no")
