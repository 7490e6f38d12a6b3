"""Channels and cursors."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentbus.model.ids import Seq, SubscriptionId
from agentbus.wire.events import TurnEnded
from agentbus.wire.links import (
    GATEWAY_WRITER,
    ChannelCreate,
    ChannelOpened,
    Done,
    Outcomes,
    Refused,
    Registered,
    Release,
    Renew,
    Report,
    Subscribe,
    Unsubscribe,
)
from tests.support.writer_world import START, World

HOUR = 3600.0


def code(answer: Any) -> str:
    assert isinstance(answer, Refused), answer
    return answer.failure.code


def position(world: World, subscription: int) -> int:
    return world.rows("SELECT position FROM subscriptions WHERE id = ?", subscription)[0][0]


def fill(world: World, sam: Registered, count: int, channel: str = "general") -> None:
    world.time += 0.001
    stamp = f"{world.time}"
    world.ask(
        *(world.append(sam.attachment, f"{stamp}-{n}", channel=channel) for n in range(count))
    )


def report(world: World, sam: Registered, *positions: tuple[int, int]) -> Any:
    pairs = [(SubscriptionId(number), Seq(seq)) for number, seq in positions]
    (answer,) = world.ask(Report(world.ref(), sam.attachment, pairs))
    return answer


def resume(world: World, sam: Registered, native: str = "n1") -> Registered:
    world.ask(Release(world.ref(), sam.attachment))
    return world.register(native)


def test_a_new_session_follows_the_ready_made_channels_from_here_on(world: World) -> None:
    fill(world, world.register("n1"), 3)
    eve = world.register("n2")
    assert [(info.channel, info.position) for info in eve.subscriptions] == [
        ("general", 3),
        ("memory", 0),
    ]
    assert not eve.resumed
    lifetimes = {info.expires_at for info in eve.subscriptions}
    assert lifetimes == {(world.milliseconds + 72 * 3_600_000) / 1000}


def test_a_new_session_follows_exactly_the_channels_it_names_and_makes_them(world: World) -> None:
    sam = world.register("n1", channels=["general/tmi", "memory", "general/tmi"])
    assert [info.channel for info in sam.subscriptions] == ["general/tmi", "memory"]
    (opened,) = world.take(ChannelOpened)
    assert (opened.channel.name, opened.channel.kind) == ("general/tmi", "ordinary")
    assert world.register("n2", channels=[]).subscriptions == []


def test_a_channel_is_announced_before_the_answer_that_depends_on_it(world: World) -> None:
    world.tell(GATEWAY_WRITER, world.registration("n1", channels=["x"]))
    world.sent.clear()
    world.handle(TurnEnded())
    assert [type(send.message) for send in world.sent] == [ChannelOpened, Outcomes]


def test_a_resumed_session_has_what_it_had_and_no_more(world: World) -> None:
    sam = world.register("n1", channels=["x"])
    fill(world, sam, 5, "x")
    report(world, sam, (sam.subscriptions[0].id, 2))
    world.ask(Release(world.ref(), sam.attachment))
    world.time += 10 * HOUR
    resumed = world.register("n1", channels=["y"])
    (info,) = resumed.subscriptions
    assert resumed.resumed
    assert (info.id, info.channel, info.position) == (sam.subscriptions[0].id, "x", 2)
    assert info.expires_at - sam.subscriptions[0].expires_at > 9.9 * HOUR
    assert world.rows("SELECT count(*) FROM channels WHERE name = 'y'") == [(0,)]


def test_creating_a_channel_again_succeeds_unless_the_kind_differs(world: World) -> None:
    sam = world.register()

    def create(name: str, kind: Any) -> Any:
        return world.ask(ChannelCreate(world.ref(), sam.attachment, name, kind))[0]

    first, again = create("plans", "memory"), create("plans", "memory")
    assert (first.created, again.created) == (True, False)
    assert first.channel == again.channel
    assert len(world.take(ChannelOpened)) == 1
    assert code(create("plans", "ordinary")) == "channel_kind_conflict"
    assert code(create("a\nb", "ordinary")) == "invalid_argument"
    assert not create("general", "ordinary").created


def test_subscribing_starts_here_and_again_moves_nothing(world: World) -> None:
    sam = world.register(channels=[])
    fill(world, sam, 4)
    (first,) = world.ask(Subscribe(world.ref(), sam.attachment, "general", None))
    assert (first.created, first.subscription.position) == (True, 4)
    assert not first.subscription.include_own
    fill(world, sam, 2)
    world.time += HOUR
    (again,) = world.ask(Subscribe(world.ref(), sam.attachment, "general", True))
    assert (again.created, again.subscription.position) == (False, 4)
    assert again.subscription.include_own
    assert again.subscription.expires_at > first.subscription.expires_at
    (kept,) = world.ask(Subscribe(world.ref(), sam.attachment, "general", None))
    assert kept.subscription.include_own
    world.restart()
    assert resume(world, sam).subscriptions == [kept.subscription]


def test_subscribing_in_one_turn_with_sends_counts_those_before_it(world: World) -> None:
    sam = world.register(channels=[])
    _, subscribed, _ = world.ask(
        world.append(sam.attachment, "a"),
        Subscribe(world.ref(), sam.attachment, "general", None),
        world.append(sam.attachment, "b"),
    )
    assert subscribed.subscription.position == 1


def test_unknown_channels_are_not_found(world: World) -> None:
    sam = world.register()
    for operation in (
        Subscribe(world.ref(), sam.attachment, "nowhere", None),
        Unsubscribe(world.ref(), sam.attachment, "nowhere"),
    ):
        assert code(world.ask(operation)[0]) == "not_found"


def test_an_old_report_cannot_move_a_new_cursor(world: World) -> None:
    sam = world.register()
    old = sam.subscriptions[0].id
    fill(world, sam, 5)
    (gone,) = world.ask(Unsubscribe(world.ref(), sam.attachment, "general"))
    assert gone.subscription == old
    (none,) = world.ask(Unsubscribe(world.ref(), sam.attachment, "general"))
    assert none.subscription is None
    (new,) = world.ask(Subscribe(world.ref(), sam.attachment, "general", None))
    assert new.subscription.id > old
    fill(world, sam, 5)
    assert isinstance(report(world, sam, (old, 9)), Done)
    assert position(world, new.subscription.id) == 5


def test_the_number_of_the_newest_subscription_is_never_given_out_again(world: World) -> None:
    sam = world.register()
    seen = set()
    for _ in range(3):
        (new,) = world.ask(Subscribe(world.ref(), sam.attachment, "general", None))
        world.ask(Unsubscribe(world.ref(), sam.attachment, "general"))
        world.restart()
        assert new.subscription.id not in seen
        seen.add(new.subscription.id)


def test_reports_move_cursors_forward_only_and_not_past_what_exists(world: World) -> None:
    sam = world.register()
    number = sam.subscriptions[0].id
    fill(world, sam, 5)
    for seq, after in ((3, 3), (2, 3), (6, 3), (5, 5), (4, 5)):
        report(world, sam, (number, seq))
        assert position(world, number) == after


def test_reports_of_one_turn_are_merged(world: World) -> None:
    sam = world.register()
    number = sam.subscriptions[0].id
    fill(world, sam, 5)
    reports = [Report(world.ref(), sam.attachment, [(number, Seq(seq))]) for seq in (1, 3, 2, 4)]
    statements: list[str] = []
    world.store._connection.set_trace_callback(statements.append)
    assert [type(answer) for answer in world.ask(*reports)] == [Done] * 4
    world.store._connection.set_trace_callback(None)
    assert len([s for s in statements if s.strip().startswith("UPDATE subscriptions")]) == 1
    assert position(world, number) == 4


def test_a_report_of_a_stale_attachment_is_refused_whole(world: World) -> None:
    sam = world.register()
    fill(world, sam, 2)
    world.ask(Release(world.ref(), sam.attachment))
    assert code(report(world, sam, (sam.subscriptions[0].id, 1))) == "stale_attachment"
    assert position(world, sam.subscriptions[0].id) == 0


def test_reports_before_a_release_and_a_resume_in_one_turn_count(world: World) -> None:
    sam = world.register()
    number = sam.subscriptions[0].id
    fill(world, sam, 5)
    _, _, resumed = world.ask(
        Report(world.ref(), sam.attachment, [(number, Seq(4))]),
        Release(world.ref(), sam.attachment),
        world.registration("n1"),
    )
    assert resumed.subscriptions[0].position == 4


def test_activity_renews_all_cursors_that_live(world: World) -> None:
    sam = world.register()
    world.time += 71 * HOUR
    (renewed,) = world.ask(Renew(world.ref(), sam.attachment))
    assert {info.expires_at for info in renewed.subscriptions} == {START + world.time + 72 * HOUR}
    world.time += 71 * HOUR
    assert len(resume(world, sam).subscriptions) == 2


def test_a_resumed_session_is_active_and_one_whose_adapter_came_back_is_not(world: World) -> None:
    sam = world.register()
    world.time += 71 * HOUR
    world.ask(Release(world.ref(), sam.attachment))
    back = world.register("n1", again=True)
    assert back.subscriptions == sam.subscriptions
    resumed = resume(world, back)
    assert {info.expires_at for info in resumed.subscriptions} == {START + world.time + 72 * HOUR}
    world.replace_gateway()
    world.time += 73 * HOUR
    assert world.register("n1", again=True).subscriptions == []


def test_reports_and_sends_do_not_renew(world: World) -> None:
    sam = world.register()
    world.time += HOUR
    fill(world, sam, 1)
    report(world, sam, (sam.subscriptions[0].id, 1))
    stored = world.rows("SELECT expires_at FROM subscriptions WHERE id = ?", 1)
    assert stored == [(int(sam.subscriptions[0].expires_at * 1000),)]


def test_nothing_restarts_an_expired_cursor_silently(world: World) -> None:
    sam = world.register()
    expired = sam.subscriptions[0]
    fill(world, sam, 3)
    world.time += 73 * HOUR
    (renewed,) = world.ask(Renew(world.ref(), sam.attachment))
    assert renewed.subscriptions == []
    sam = resume(world, sam)
    assert sam.subscriptions == []
    report(world, sam, (expired.id, 2))
    assert position(world, expired.id) == 0
    (anew,) = world.ask(Subscribe(world.ref(), sam.attachment, "general", None))
    assert (anew.created, anew.expired_from, anew.subscription.position) == (True, 0, 3)
    assert anew.subscription.id != expired.id


def test_a_marker_is_forgotten_when_its_position_is_reported(world: World) -> None:
    sam = world.register()
    world.time += 73 * HOUR
    report(world, sam, (sam.subscriptions[0].id, 0))
    assert world.rows("SELECT channel_id FROM subscriptions") == [(2,)]


def test_a_marker_is_forgotten_after_720_hours(world: World) -> None:
    sam = world.register()
    world.time += (72 + 720) * HOUR
    assert resume(world, sam).subscriptions == []
    assert world.rows("SELECT count(*) FROM subscriptions") == [(0,)]


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("send"), st.integers(1, 4)),
            st.tuples(st.just("report"), st.integers(-1, 30)),
            st.tuples(st.just("writer"), st.just(0)),
            st.tuples(st.just("gateway"), st.just(0)),
        ),
        max_size=25,
    )
)
def test_a_cursor_is_the_highest_true_report_whatever_happens(
    steps: list[tuple[str, int]],
) -> None:
    with tempfile.TemporaryDirectory() as directory, World(Path(directory)) as world:
        sam = world.register()
        number = sam.subscriptions[0].id
        top = expected = 0
        for step, value in steps:
            if step == "send":
                fill(world, sam, value)
                top += value
            elif step == "report":
                report(world, sam, (number, value))
            elif step == "writer":
                world.restart()
            else:
                world.replace_gateway()
                sam = world.register()
            if step == "report" and value <= top:
                expected = max(expected, value)
            assert position(world, number) == expected
        assert sam.subscriptions[0].id == number
