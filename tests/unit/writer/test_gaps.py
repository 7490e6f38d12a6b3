"""Gaps that retention makes, and what is left to be delivered: exact for each subscription."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agentbus.model.ids import Seq, SubscriptionId
from agentbus.model.session import SessionKey
from agentbus.store.write import gaps
from agentbus.wire.links import (
    CountAsk,
    Counted,
    GapAsk,
    GapTold,
    MemoryDelete,
    Refused,
    Registered,
    Release,
    Report,
    StatusAsk,
    Subscribe,
    Unsubscribe,
)
from agentbus.writer.status import DETACHED
from tests.support.writer_world import World

HOUR = 3600.0


def evict(world: World, up_to: int, channel: int = 1) -> None:
    """As retention does it."""
    with world.store.transaction():
        gone = world.store._connection.execute(
            "DELETE FROM messages WHERE channel_id = ? AND seq <= ? AND memory_id IS NULL "
            "RETURNING channel_id, session_id, seq",
            (channel, up_to),
        ).fetchall()
        world.store.gaps.evicted(gone, world.milliseconds)


def send(world: World, *senders: Registered, channel: str = "general") -> None:
    world.ask(
        *(world.append(who.attachment, f"m{world.ref()}", channel=channel) for who in senders)
    )


def follow(world: World, sam: Registered, channel: str = "general") -> int:
    return next(info.id for info in sam.subscriptions if info.channel == channel)


def gap(world: World, subscription: int, after: int) -> tuple[int, int]:
    (answer,) = world.ask(GapAsk(world.ref(), SubscriptionId(subscription), Seq(after)))
    assert isinstance(answer, GapTold), answer
    assert (answer.subscription, answer.after) == (subscription, after)
    return answer.resumed_at, answer.lost


def report(world: World, sam: Registered, position: int) -> None:
    pairs = [(SubscriptionId(follow(world, sam)), Seq(position))]
    world.ask(Report(world.ref(), sam.attachment, pairs))


def undelivered(world: World, sam: Registered) -> dict[str, int]:
    (answer,) = world.ask(CountAsk(world.ref(), sam.attachment))
    assert isinstance(answer, Counted)
    return {info.channel: info.undelivered for info in answer.subscriptions}


def test_a_session_is_counted_by_its_key_held_or_not(world: World) -> None:
    sam, eve = world.register("n1"), world.register("n2")
    by_key = CountAsk(0, SessionKey("codex", "n1"))
    send(world, sam, eve, eve)
    report(world, sam, 2)
    held, by_attachment = world.ask(by_key, CountAsk(0, sam.attachment))
    assert isinstance(held, Counted)
    assert held == by_attachment
    assert {info.channel: info.undelivered for info in held.subscriptions}["general"] == 1
    world.ask(Release(world.ref(), sam.attachment))
    (away,) = world.ask(by_key)
    assert away == held
    for number in range(DETACHED + 1):
        other = world.register(f"later{number}")
        world.time += 1
        world.ask(Release(world.ref(), other.attachment))
    assert world.ask(by_key) == [held]


def test_a_key_that_nobody_ever_had_is_not_found(world: World) -> None:
    world.register("n1")
    (answer,) = world.ask(CountAsk(world.ref(), SessionKey("codex", "n1", "child")))
    assert isinstance(answer, Refused)
    assert answer.failure.code == "not_found"


def test_a_gap_ends_at_the_oldest_message_left_and_leaves_out_own_ones(world: World) -> None:
    sam, eve = world.register("n1"), world.register("n2")
    send(world, sam, eve, eve, sam, eve, eve)
    evict(world, 5)
    assert gap(world, follow(world, sam), 0) == (6, 3)
    assert gap(world, follow(world, eve), 0) == (6, 2)
    assert gap(world, follow(world, sam), 1) == (6, 3)
    assert gap(world, follow(world, sam), 2) == (6, 2)
    assert gap(world, follow(world, sam), 4) == (6, 1)
    assert gap(world, follow(world, sam), 5) == (6, 0)


def test_where_nothing_is_missing_the_next_position_is_next(world: World) -> None:
    sam, eve = world.register("n1"), world.register("n2")
    assert gap(world, follow(world, sam), 0) == (1, 0)
    send(world, eve, eve)
    assert gap(world, follow(world, sam), 1) == (2, 0)
    assert gap(world, follow(world, sam), 2) == (3, 0)


def test_a_channel_that_is_empty_resumes_after_its_last_position(world: World) -> None:
    sam, eve = world.register("n1"), world.register("n2")
    send(world, eve, eve, sam)
    evict(world, 3)
    assert gap(world, follow(world, sam), 0) == (4, 2)
    send(world, eve)
    assert gap(world, follow(world, sam), 0) == (4, 2)


def test_own_messages_count_for_whoever_includes_them(world: World) -> None:
    sam = world.register()
    send(world, sam, sam, sam)
    evict(world, 2)
    world.ask(Subscribe(world.ref(), sam.attachment, "general", True))
    assert gap(world, follow(world, sam), 0) == (3, 2)
    world.ask(Subscribe(world.ref(), sam.attachment, "general", False))
    assert gap(world, follow(world, sam), 0) == (3, 0)


def test_what_was_reported_is_not_lost(world: World) -> None:
    sam, eve = world.register("n1"), world.register("n2")
    send(world, *[eve] * 6)
    report(world, sam, 3)
    evict(world, 5)
    assert gap(world, follow(world, sam), 1) == (6, 2)


def test_messages_of_the_same_batch_are_seen(world: World) -> None:
    sam, eve = world.register("n1"), world.register("n2")
    send(world, eve)
    evict(world, 1)
    answers = world.ask(
        world.append(eve.attachment, "new"),
        GapAsk(world.ref(), SubscriptionId(follow(world, sam)), Seq(0)),
    )
    assert (answers[1].resumed_at, answers[1].lost) == (2, 1)


def test_gaps_are_the_same_after_a_restart_and_over_many_blocks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gaps, "BLOCK", 8)
    sam, eve = world.register("n1"), world.register("n2")
    for _ in range(10):
        send(world, sam, eve, sam)
    for up_to in (3, 7, 8, 9, 23, 29):
        evict(world, up_to)
    world.restart()
    for after in range(29):
        own = sum(1 for seq in range(after + 1, 30) if seq % 3 != 2)
        assert gap(world, follow(world, sam), after) == (30, 29 - after - own)


def test_a_memory_channel_has_no_gaps(world: World) -> None:
    sam, eve = world.register("n1"), world.register("n2")
    (made,) = world.ask(world.append(eve.attachment, "a", channel="memory"))
    world.ask(MemoryDelete(world.ref(), eve.attachment, made.memory_id, "d", b""))
    assert gap(world, follow(world, sam, "memory"), 0) == (1, 0)


def test_a_subscription_that_ended_or_expired_is_not_found(world: World) -> None:
    sam, eve = world.register("n1"), world.register("n2")
    number = follow(world, sam)
    world.ask(Unsubscribe(world.ref(), sam.attachment, "general"))
    (answer,) = world.ask(GapAsk(world.ref(), SubscriptionId(number), Seq(0)))
    assert isinstance(answer, Refused)
    assert answer.failure.code == "not_found"
    world.time += 72 * HOUR
    number = follow(world, eve)
    (answer,) = world.ask(GapAsk(world.ref(), SubscriptionId(number), Seq(0)))
    assert isinstance(answer, Refused)


def test_what_nobody_can_ask_about_is_not_kept(world: World) -> None:
    def kept() -> int:
        return world.rows("SELECT count(*) FROM own_evicted")[0][0]

    sam, eve = world.register("n1"), world.register("n2")
    send(world, sam, eve, sam)
    report(world, sam, 1)
    evict(world, 1)
    assert kept() == 0, "every cursor of its sender is past it"
    evict(world, 3)
    assert kept() == 2
    world.ask(Unsubscribe(world.ref(), eve.attachment, "general"))
    assert kept() == 1
    with world.store.transaction():
        world.store.gaps.forget_passed(world.milliseconds)
    assert kept() == 1
    send(world, *[eve] * gaps.BLOCK)
    report(world, sam, gaps.BLOCK)
    with world.store.transaction():
        world.store.gaps.forget_passed(world.milliseconds)
    assert kept() == 0


def test_an_expired_cursor_keeps_no_record_of_own_messages(world: World) -> None:
    sam = world.register("n1")
    send(world, sam)
    evict(world, 1)
    world.time += 72 * HOUR
    with world.store.transaction():
        world.store.gaps.forget_passed(world.milliseconds)
    assert world.rows("SELECT count(*) FROM own_evicted") == [(0,)]


def test_counts_leave_out_own_and_evicted_messages(world: World) -> None:
    sam, eve = world.register("n1"), world.register("n2")
    send(world, sam, eve, eve, sam, eve)
    assert undelivered(world, sam) == {"general": 3, "memory": 0}
    assert undelivered(world, eve) == {"general": 2, "memory": 0}
    evict(world, 2)
    assert undelivered(world, sam) == {"general": 2, "memory": 0}
    report(world, sam, 4)
    assert undelivered(world, sam) == {"general": 1, "memory": 0}
    world.ask(Subscribe(world.ref(), sam.attachment, "general", True))
    send(world, sam)
    assert undelivered(world, sam) == {"general": 2, "memory": 0}


def test_memories_are_counted_once_and_for_whoever_did_not_create_them(world: World) -> None:
    sam, eve = world.register("n1"), world.register("n2")
    made = world.ask(
        *(world.append(sam.attachment, f"a{number}", channel="memory") for number in range(3))
    )
    world.ask(MemoryDelete(world.ref(), eve.attachment, made[0].memory_id, "d", b""))
    assert undelivered(world, sam)["memory"] == 0
    assert undelivered(world, eve)["memory"] == 2


def test_counts_include_what_came_in_the_same_batch(world: World) -> None:
    sam, eve = world.register("n1"), world.register("n2")
    answers = world.ask(world.append(eve.attachment, "a"), CountAsk(world.ref(), sam.attachment))
    assert answers[1].subscriptions[0].undelivered == 1


def test_every_answer_about_a_subscription_counts(world: World) -> None:
    sam, eve = world.register("n1"), world.register("n2")
    send(world, eve, eve)
    (again,) = world.ask(world.registration("n1", attachment=sam.attachment))
    assert again.subscriptions[0].undelivered == 2
    (subscribed,) = world.ask(Subscribe(world.ref(), sam.attachment, "general", None))
    assert subscribed.subscription.undelivered == 2
    (status,) = world.ask(StatusAsk(world.ref()))
    counts = {row.native: row.subscriptions[0].undelivered for row in status.sessions}
    assert counts == {"n1": 2, "n2": 0}


def test_the_status_counts_for_sessions_that_nobody_holds_too(world: World) -> None:
    sam, eve = world.register("n1"), world.register("n2")
    send(world, eve, sam, eve)
    world.replace_gateway()
    (status,) = world.ask(StatusAsk(world.ref()))
    counts = {row.native: row.subscriptions[0].undelivered for row in status.sessions}
    assert counts == {"n1": 2, "n2": 1}


class Evictions(RuleBasedStateMachine):
    """Sessions send, report and lose; a list of senders is what they are compared with."""

    @initialize()
    def begin(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.world = World(Path(self.directory.name))
        self.who = [self.world.register(f"n{number}") for number in range(3)]
        self.positions = [0, 0, 0]
        self.senders: list[int] = []
        self.oldest = 1

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.store.close()
            self.directory.cleanup()

    @rule(senders=st.lists(st.integers(0, 2), min_size=1, max_size=6))
    def sent(self, senders: list[int]) -> None:
        send(self.world, *(self.who[sender] for sender in senders))
        self.senders += senders

    @rule(share=st.floats(0, 1))
    def evicted(self, share: float) -> None:
        up_to = round(share * len(self.senders))
        evict(self.world, up_to)
        self.oldest = max(self.oldest, up_to + 1)

    @rule(number=st.integers(0, 2), share=st.floats(0, 1))
    def reported(self, number: int, share: float) -> None:
        position = round(share * len(self.senders))
        report(self.world, self.who[number], position)
        self.positions[number] = max(self.positions[number], position)

    @rule()
    def tidied(self) -> None:
        with self.world.store.transaction():
            self.world.store.gaps.forget_passed(self.world.milliseconds)

    @rule()
    def restarted(self) -> None:
        self.world.restart()

    @invariant()
    def gaps_and_counts_are_exact(self) -> None:
        if not hasattr(self, "world"):
            return
        for number, sam in enumerate(self.who):
            position = self.positions[number]
            live = self._others(number, max(position + 1, self.oldest), len(self.senders))
            assert undelivered(self.world, sam)["general"] == live
            for after in {position, (position + len(self.senders)) // 2, len(self.senders)}:
                resumed_at = max(after + 1, self.oldest)
                lost = self._others(number, after + 1, resumed_at - 1)
                assert gap(self.world, follow(self.world, sam), after) == (resumed_at, lost)

    def _others(self, number: int, first: int, last: int) -> int:
        return sum(1 for sender in self.senders[first - 1 : last] if sender != number)


TestEvictions = Evictions.TestCase
TestEvictions.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)


@given(
    own=st.sets(st.integers(1, 60)),
    after=st.integers(0, 61),
    before=st.integers(0, 62),
    block=st.integers(1, 70),
)
@settings(max_examples=100, deadline=None)
def test_own_positions_are_counted_between_any_two(
    shared: World, own: set[int], after: int, before: int, block: int
) -> None:
    original, gaps.BLOCK = gaps.BLOCK, block  # type: ignore[misc]
    try:
        with shared.store.transaction():
            shared.store.gaps.forget(SubscriptionId(9))
            if own:
                shared.store.gaps._note(SubscriptionId(9), [Seq(seq) for seq in own])
            found = shared.store.gaps.own(SubscriptionId(9), Seq(after), Seq(before))
    finally:
        gaps.BLOCK = original  # type: ignore[misc]
    assert found == sum(1 for seq in own if after < seq < before)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with World(tmp_path_factory.mktemp("gaps")) as made:
        yield made
