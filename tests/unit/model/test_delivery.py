"""Each message once and in order, per epoch, whatever comes in whatever order."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agentbus.mirror.read import Entry
from agentbus.model.delivery import TURNS, Delivery, State, Turn
from agentbus.model.ids import Seq, SessionId, SubscriptionId
from agentbus.model.stream import Lost, Push, Run, Stream
from agentbus.model.window import Share, Window

ME, OTHER = SessionId(1), SessionId(2)


def entry(seq: int, sender: SessionId = OTHER, size: int = 10) -> Entry:
    return Entry(Seq(seq), sender, b"x" * size)


def some(first: int, last: int) -> list[Entry]:
    return [entry(seq) for seq in range(first, last + 1)]


def made(
    position: int = 0,
    *,
    top: int = 0,
    messages: int = 100,
    size: int = 10_000,
    include_own: bool = False,
    dense: bool = True,
) -> Delivery:
    share = Share(Window(messages, size))
    stream = Stream(top, dense=dense)
    return Delivery(SubscriptionId(7), ME, Seq(position), stream, share, include_own=include_own)


def show(delivery: Delivery, *found: Entry) -> Push | None:
    delivery.stream.top = found[-1].seq
    return delivery.visible(Run(found))


def seqs(push: Push | None) -> list[int]:
    return [] if push is None else [each.seq for each in push.entries]


# ---- the table


def test_only_the_turns_of_the_table_are_possible() -> None:
    possible = {(state, turn) for state, turn in product(State, Turn) if (state, turn) in TURNS}
    assert len(possible) == 8 + len(State)
    assert (State.LIVE, Turn.READ_BEGAN) not in possible


def test_every_state_can_be_reached_and_left_for_live() -> None:
    assert set(TURNS.values()) == set(State)
    for state in State:
        reached, seen = {state}, set()
        while reached - seen:
            seen |= reached
            reached |= {after for (before, _), after in TURNS.items() if before in reached}
        assert State.LIVE in reached


# ---- live


def test_what_becomes_visible_next_is_pushed_as_it_is() -> None:
    delivery, run = made(), some(1, 3)
    push = show(delivery, *run)
    assert push == Push(Seq(3), tuple(run))
    assert (delivery.pushed, delivery.outstanding, delivery.state) == (3, 3, State.LIVE)


def test_what_was_pushed_already_is_dropped() -> None:
    delivery = made(5, top=5)
    assert show(delivery, *some(4, 5)) is None
    assert seqs(show(delivery, *some(4, 7))) == [6, 7]


def test_a_hole_makes_it_lag() -> None:
    delivery = made()
    assert not show(delivery, *some(2, 3))
    assert (delivery.pushed, delivery.state) == (0, State.LAGGING)


def test_a_full_window_makes_it_lag_after_what_fits() -> None:
    delivery = made(messages=2)
    push = show(delivery, *some(1, 3))
    assert push is not None
    assert (seqs(push), push.through, delivery.state) == ([1, 2], 2, State.LAGGING)


def test_a_window_is_full_by_bytes_too() -> None:
    delivery = made(size=25)
    assert seqs(show(delivery, *some(1, 3))) == [1, 2]


def test_a_message_larger_than_the_window_comes_alone() -> None:
    delivery = made(size=5)
    assert seqs(show(delivery, *some(1, 2))) == [1]


def test_an_attachment_with_nothing_outstanding_gets_one_message_into_a_full_window() -> None:
    window = Window(2, 100)
    Share(window).charge(2, 20)
    delivery = Delivery(SubscriptionId(1), ME, Seq(0), Stream(), Share(window))
    assert seqs(show(delivery, *some(1, 2))) == [1]
    assert delivery.state is State.LAGGING


def test_a_frame_in_several_runs_is_pushed_run_by_run() -> None:
    delivery = made()
    delivery.stream.top = Seq(6)
    pushes = [delivery.visible(Run(some(first, first + 1))) for first in (1, 3, 5)]
    assert [seqs(push) for push in pushes] == [[1, 2], [3, 4], [5, 6]]
    assert delivery.state is State.LIVE


def test_a_run_with_own_messages_does_not_make_it_lag_before_the_next_one() -> None:
    delivery = made()
    delivery.stream.top = Seq(4)
    pushes = [delivery.visible(Run([entry(n, ME), entry(n + 1)])) for n in (1, 3)]
    assert [seqs(push) for push in pushes] == [[2], [4]]
    assert delivery.state is State.LIVE


def test_what_follows_may_be_remembered_instead_of_read() -> None:
    delivery = made(messages=3)
    show(delivery, *some(1, 5))
    delivery.reported(Seq(2))
    run = Run(some(1, 5))
    assert not delivery.admits(run)
    assert seqs(delivery.remembered(run)) == [4, 5]
    assert delivery.state is State.LIVE
    assert seqs(delivery.remembered(run)) == []


def test_what_is_remembered_fills_the_window_and_no_more() -> None:
    delivery = made(messages=2)
    show(delivery, *some(1, 5))
    delivery.reported(Seq(1))
    assert seqs(delivery.remembered(Run(some(3, 4)))) == [3]
    assert (delivery.pushed, delivery.state) == (3, State.LAGGING)


# ---- own messages


def test_own_messages_are_passed_over_and_through_covers_them() -> None:
    delivery = made()
    push = show(delivery, entry(1), entry(2, ME))
    assert push is not None
    assert (seqs(push), push.through) == ([1], 2)
    assert delivery.passable() is None
    delivery.reported(Seq(2))
    assert delivery.passable() is None


def test_a_cursor_may_pass_own_messages_when_nothing_is_outstanding() -> None:
    delivery = made()
    assert not show(delivery, entry(1, ME))
    assert delivery.passable() == 1
    delivery.passed(Seq(1))
    assert delivery.passable() is None


def test_own_messages_come_where_they_are_asked_for() -> None:
    assert seqs(show(made(include_own=True), entry(1, ME), entry(2))) == [1, 2]


# ---- refills


def test_a_subscription_behind_its_stream_begins_as_lagging() -> None:
    assert made(3, top=8).state is State.LAGGING
    assert made(8, top=8).state is State.LIVE
    assert made(9, top=8).state is State.LIVE


def test_a_read_that_reaches_the_top_makes_it_live() -> None:
    delivery = made(top=3)
    delivery.read_began(1)
    assert delivery.state is State.REFILLING
    assert seqs(delivery.refilled(1, some(1, 3))) == [1, 2, 3]
    assert delivery.state is State.LIVE


def test_what_became_visible_during_the_read_is_read_next() -> None:
    delivery = made(top=3)
    delivery.read_began(1)
    assert show(delivery, entry(4)) is None
    delivery.refilled(1, some(1, 3))
    assert delivery.state is State.LAGGING
    delivery.read_began(2)
    assert seqs(delivery.refilled(2, some(4, 4))) == [4]
    assert delivery.state is State.LIVE


@pytest.mark.parametrize("found", [[], [entry(2)]], ids=["nothing", "a hole"])
def test_a_read_without_what_follows_is_tried_again_later(found: list[Entry]) -> None:
    delivery = made(top=3)
    delivery.read_began(1)
    assert not delivery.refilled(1, found)
    assert (delivery.pushed, delivery.state) == (0, State.STALLED)
    delivery.retried()
    assert delivery.state is State.LAGGING
    delivery.retried()
    assert delivery.state is State.LAGGING


def test_a_read_that_finds_the_window_full_waits_for_room() -> None:
    delivery = made(top=3, messages=2)
    delivery.read_began(1)
    assert seqs(delivery.refilled(1, some(1, 3))) == [1, 2]
    delivery.read_began(2)
    assert not delivery.refilled(2, some(3, 3))
    assert delivery.state is State.LAGGING


def test_a_reply_to_a_read_of_an_older_epoch_is_nothing() -> None:
    delivery = made(top=3)
    delivery.read_began(1)
    delivery.restart()
    assert delivery.refilled(1, some(1, 3)) is None
    delivery.read_began(2)
    assert delivery.refilled(1, some(1, 3)) is None
    assert seqs(delivery.refilled(2, some(1, 3))) == [1, 2, 3]


# ---- what retention removed


def cut(position: int = 2, **given: int) -> Delivery:
    """A subscription at a position, of a channel whose messages up to 5 are gone; 9 is its top."""
    delivery = made(position, top=9, **given)
    delivery.stream.oldest = Seq(6)
    return delivery


def test_what_retention_removed_is_asked_for_and_is_a_gap_of_its_own() -> None:
    delivery = cut()
    assert delivery.is_cut
    delivery.read_began(1)
    push = delivery.told(1, Seq(2), Seq(6), 3)
    assert push == Push(Seq(5), (), [Lost(Seq(2), Seq(6), 3)])
    assert (delivery.is_cut, delivery.state) == (False, State.LAGGING)
    delivery.read_began(2)
    assert seqs(delivery.refilled(2, some(6, 9))) == [6, 7, 8, 9]


def test_nothing_is_cut_where_the_next_message_is_there() -> None:
    assert not cut(5).is_cut
    assert cut(4).is_cut
    assert not made(2, top=9, dense=False).is_cut


def test_a_gap_holds_the_cursor_until_it_is_reported_and_is_no_message() -> None:
    delivery = cut()
    delivery.read_began(1)
    delivery.told(1, Seq(2), Seq(6), 3)
    assert (delivery.outstanding, delivery.undelivered, delivery.passable()) == (1, 4, None)
    assert delivery.reported(Seq(5)) == 0
    assert (delivery.outstanding, delivery.undelivered) == (0, 4)


def test_where_only_own_messages_were_removed_they_are_passed_over() -> None:
    delivery = cut()
    delivery.read_began(1)
    assert not delivery.told(1, Seq(2), Seq(6), 0)
    assert (delivery.pushed, delivery.outstanding, delivery.passable()) == (5, 0, 5)


def test_a_gap_at_the_end_is_told_without_a_message_after_it() -> None:
    delivery = made(2, top=9)
    delivery.stream.oldest = Seq(10)
    delivery.read_began(1)
    push = delivery.told(1, Seq(2), Seq(10), 7)
    assert push is not None
    assert (push.through, delivery.state) == (9, State.LIVE)


def test_more_may_be_gone_from_the_database_than_from_the_stream() -> None:
    delivery = cut()
    delivery.read_began(1)
    delivery.told(1, Seq(2), Seq(8), 5)
    delivery.read_began(2)
    assert seqs(delivery.refilled(2, some(6, 9))) == [8, 9]


def test_an_answer_about_another_position_is_asked_for_again() -> None:
    delivery = cut()
    delivery.read_began(1)
    delivery.reported(Seq(3))
    assert delivery.told(1, Seq(2), Seq(6), 3) is None
    assert (delivery.pushed, delivery.state, delivery.is_cut) == (3, State.LAGGING, True)


def test_an_answer_that_nothing_is_missing_is_asked_for_again_a_little_later() -> None:
    delivery = cut()
    delivery.read_began(1)
    assert not delivery.told(1, Seq(2), Seq(3), 0)
    assert delivery.state is State.STALLED
    assert delivery.told(1, Seq(2), Seq(6), 3) is None


def test_a_hole_is_never_passed_over_without_being_asked_about() -> None:
    delivery = cut()
    delivery.read_began(1)
    assert not delivery.refilled(1, some(6, 9))
    assert (delivery.pushed, delivery.state) == (2, State.STALLED)


# ---- memories


def test_where_holes_are_normal_they_are_passed_over_by_a_read_alone() -> None:
    delivery = made(0, dense=False)
    assert not show(delivery, *some(3, 4))
    delivery.read_began(1)
    push = delivery.refilled(1, some(3, 4))
    assert push is not None
    assert (seqs(push), push.gaps, push.through) == ([3, 4], (), 4)


def test_a_read_to_the_end_passes_over_what_was_missing_there_when_it_began() -> None:
    delivery = made(0, top=4, dense=False)
    delivery.read_began(1)
    delivery.stream.top = Seq(6)
    push = delivery.refilled(1, some(2, 2), at_end=True)
    assert push is not None
    assert (seqs(push), push.through, delivery.state) == ([2], 4, State.LAGGING)


def test_what_does_not_fit_is_not_passed_over() -> None:
    delivery = made(0, top=4, messages=1, dense=False)
    delivery.read_began(1)
    push = delivery.refilled(1, some(2, 3), at_end=True)
    assert push is not None
    assert (seqs(push), push.through) == ([2], 2)


def test_a_missing_end_of_a_dense_stream_is_waited_for() -> None:
    delivery = made(0, top=4)
    delivery.read_began(1)
    assert not delivery.refilled(1, [], at_end=True)
    assert (delivery.pushed, delivery.state) == (0, State.STALLED)


def test_a_revision_of_what_is_outstanding_takes_its_room() -> None:
    delivery = made(dense=False, size=100)
    show(delivery, *some(1, 3))
    assert delivery.revised(Seq(2), 50)
    assert not delivery.revised(Seq(4), 50)
    assert delivery._share.bytes == 70
    delivery.reported(Seq(2))
    assert not delivery.revised(Seq(2), 1)
    assert delivery._share.bytes == 10


def test_a_deleted_memory_is_not_outstanding_any_more() -> None:
    delivery = made(dense=False)
    show(delivery, *some(1, 2))
    assert delivery.revised(Seq(2), None)
    assert not delivery.revised(Seq(2), None)
    assert (delivery.outstanding, delivery.undelivered) == (1, 1)
    assert delivery.revised(Seq(1), None)
    assert (delivery.passable(), delivery._share.messages) == (2, 0)


# ---- reports and epochs


def test_a_report_frees_the_window_by_position() -> None:
    delivery = made(messages=3)
    show(delivery, *some(1, 3))
    assert delivery.reported(Seq(2)) == 2
    assert delivery.outstanding == 1
    assert delivery.oldest_undelivered == 3


def test_a_new_epoch_starts_after_what_is_confirmed() -> None:
    delivery = made()
    show(delivery, *some(1, 4))
    delivery.reported(Seq(3))
    delivery.committed(Seq(2))
    delivery.restart()
    assert (delivery.pushed, delivery.outstanding, delivery.state) == (2, 0, State.LAGGING)


def test_what_was_handed_off_before_the_epoch_is_not_pushed_again() -> None:
    delivery = made(top=4)
    delivery.reported(Seq(3))
    delivery.read_began(1)
    assert seqs(delivery.refilled(1, some(1, 4))) == [4]


def test_a_report_that_reaches_the_top_makes_it_live() -> None:
    delivery = made(top=4)
    delivery.read_began(1)
    delivery.reported(Seq(4))
    assert delivery.state is State.LIVE
    assert delivery.refilled(1, some(1, 4)) is None


def test_ending_gives_all_room_back() -> None:
    window = Window(10, 1000)
    share = Share(window)
    delivery = Delivery(SubscriptionId(1), ME, Seq(0), Stream(), share)
    show(delivery, *some(1, 4))
    delivery.end()
    assert (window.messages, window.bytes, share.messages, share.bytes) == (0, 0, 0, 0)


def test_lag_and_undelivered_are_counted() -> None:
    delivery = made(messages=2)
    show(delivery, *some(1, 5))
    assert (delivery.lag, delivery.undelivered, delivery.oldest_undelivered) == (3, 5, 1)
    assert made(4, top=4).oldest_undelivered is None
    assert made(4, top=6).oldest_undelivered == 5


# ---- any interleaving


class AnyOrder(RuleBasedStateMachine):
    """A stream that grows and loses its oldest messages, an adapter, and everything in between."""

    @initialize(
        position=st.integers(0, 3),
        backlog=st.integers(0, 6),
        messages=st.integers(1, 5),
        size=st.integers(1, 60),
        include_own=st.booleans(),
        dense=st.booleans(),
    )
    def begin(
        self,
        position: int,
        backlog: int,
        messages: int,
        size: int,
        include_own: bool,
        dense: bool,
    ) -> None:
        self.dense, self.include_own = dense, include_own
        self.committed: list[Entry] = some(1, position + backlog)
        self.stream = Stream(len(self.committed), dense=dense)
        self.window = Window(messages, size)
        self.share = Share(self.window)
        self.other = Share(self.window)
        self.delivery = Delivery(
            SubscriptionId(1), ME, Seq(position), self.stream, self.share, include_own=include_own
        )
        self.removed: set[int] = set()
        self.reads = 0
        self.under_way: list[tuple[int, int, list[Entry]]] = []
        self.confirmed = position
        self.handed_off = position
        self.unconfirmed: list[int] = []
        self.expect_from(position)

    def expect_from(self, position: int) -> None:
        self.covered = position
        self.held: list[int] = []

    def wanted(self, item: Entry) -> bool:
        return self.include_own or item.session_id != ME

    def got(self, push: Push | None) -> None:
        """The adapter: everything from `covered` to `through` is there, own, removed or told."""
        if push is None:
            return
        between = self.committed[self.covered : push.through]
        for lost in push.gaps:
            assert not push.entries
            gone = range(lost.after_seq + 1, lost.resumed_at_seq)
            assert self.removed.issuperset(gone)
            assert lost.lost == sum(self.wanted(item) for item in between)
            assert (lost.after_seq, lost.resumed_at_seq) == (self.covered, push.through + 1)
            self.held.append(push.through)
        got = [item.seq for item in push.entries]
        self.held += got
        wanted = [item.seq for item in between if self.wanted(item)]
        if push.gaps:
            wanted = []
        elif not self.dense or not got:
            wanted = [seq for seq in wanted if seq not in self.removed]
            got = [seq for seq in got if seq not in self.removed]
        assert got == wanted
        self.covered = push.through

    @rule(count=st.integers(1, 4), own=st.lists(st.booleans(), min_size=4, max_size=4))
    def messages_become_visible(self, count: int, own: list[bool]) -> None:
        self.become_visible([[ME if own[i] else OTHER for i in range(count)]])

    @rule(counts=st.lists(st.integers(1, 4), min_size=2, max_size=3), own=st.integers(-1, 3))
    def messages_become_visible_in_several_runs(self, counts: list[int], own: int) -> None:
        self.become_visible([[ME if i == own else OTHER for i in range(n)] for n in counts])

    def become_visible(self, senders: list[list[SessionId]]) -> None:
        runs = []
        for each in senders:
            first = len(self.committed) + 1
            runs.append([entry(first + i, sender) for i, sender in enumerate(each)])
            self.committed += runs[-1]
        self.stream.top = Seq(len(self.committed))
        for run in runs:
            self.got(self.delivery.visible(Run(run)))

    @precondition(lambda self: self.dense and self.delivery.state is State.LAGGING)
    @rule(before=st.integers(0, 3), count=st.integers(1, 6))
    def what_follows_is_remembered(self, before: int, count: int) -> None:
        if self.delivery.is_cut:
            return
        first = max(0, self.delivery.pushed - before)
        run = self.committed[first : self.delivery.pushed + count]
        if run and run[-1].seq <= self.stream.top:
            self.got(self.delivery.remembered(Run(run)))

    @rule(count=st.integers(1, 2))
    def messages_are_stored_and_nobody_says_so(self, count: int) -> None:
        first = len(self.committed) + 1
        self.committed += some(first, first + count - 1)

    @rule()
    def the_top_is_told(self) -> None:
        self.stream.top = Seq(len(self.committed))
        self.delivery.raised()

    @precondition(lambda self: self.delivery.state is State.LAGGING)
    @rule()
    def a_read_begins(self) -> None:
        if self.delivery.is_cut:
            return
        self.reads += 1
        after = self.delivery.pushed
        self.under_way.append((self.reads, after, self.there_is(after)))
        self.delivery.read_began(self.reads)

    def there_is(self, after: int) -> list[Entry]:
        return [x for x in self.committed if x.seq > after and x.seq not in self.removed]

    @precondition(lambda self: self.under_way)
    @rule(count=st.integers(0, 6), early=st.integers(0, 3), data=st.data())
    def a_reply_comes(self, count: int, early: int, data: st.DataObject) -> None:
        """A read goes in steps, and retention may come between two of them."""
        index = data.draw(st.integers(0, len(self.under_way) - 1))
        ref, after, before = self.under_way.pop(index)
        first = before[:early]
        found = first + self.there_is(first[-1].seq if first else after)
        at_end = count >= len(found)
        self.got(self.delivery.refilled(ref, found[:count], at_end=at_end))

    @precondition(lambda self: self.delivery.state is State.LAGGING and self.delivery.is_cut)
    @rule(moved=st.integers(0, 2))
    def what_is_lost_is_asked_and_told(self, moved: int) -> None:
        """In between, the adapter may report, and retention may remove more."""
        if not self.share.admits(0):
            return
        self.reads += 1
        after = self.delivery.pushed
        self.delivery.read_began(self.reads)
        if moved == 1:
            self.report(self.covered)
        elif moved == 2:
            self.retention_removes_the_oldest(1)
        resumed_at = max(self.removed, default=0) + 1
        lost = sum(self.wanted(item) for item in self.committed[after : resumed_at - 1])
        self.got(self.delivery.told(self.reads, after, Seq(resumed_at), lost))

    @precondition(lambda self: self.under_way and self.dense)
    @rule()
    def a_reply_comes_from_a_stream_that_is_not_whole(self) -> None:
        ref, after, _ = self.under_way.pop()
        found = self.there_is(after)
        if found and found[0].seq == max(self.removed, default=0) + 1:
            found = found[1:]
        self.got(self.delivery.refilled(ref, found[1:]))

    @rule()
    def a_moment_passes(self) -> None:
        self.delivery.retried()

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def the_adapter_reports(self, data: st.DataObject) -> None:
        self.report(data.draw(st.sampled_from([*self.held, self.covered])))

    def report(self, position: int) -> None:
        self.held = [seq for seq in self.held if seq > position]
        self.handed_off = max(self.handed_off, position)
        self.unconfirmed.append(position)
        self.delivery.reported(Seq(position))
        self.covered = max(self.covered, position)

    @precondition(lambda self: self.handed_off > self.covered)
    @rule()
    def the_adapter_reports_again_what_was_handed_off_in_another_epoch(self) -> None:
        self.report(self.handed_off)

    @rule()
    def a_report_is_committed(self) -> None:
        if self.unconfirmed:
            self.confirmed = max(self.confirmed, self.unconfirmed.pop(0))
            self.delivery.committed(Seq(self.confirmed))

    @rule()
    def a_new_epoch_begins(self) -> None:
        self.delivery.restart()
        self.expect_from(self.confirmed)

    @rule()
    def the_cursor_passes_own_messages(self) -> None:
        position = self.delivery.passable()
        if position is not None:
            assert not self.held
            self.delivery.passed(position)

    @rule(count=st.integers(0, 5))
    def another_attachment_takes_or_gives_room(self, count: int) -> None:
        self.other.free(self.other.messages, self.other.bytes)
        self.other.charge(count, count)

    @precondition(lambda self: self.dense)
    @rule(count=st.integers(1, 3))
    def retention_removes_the_oldest(self, count: int) -> None:
        oldest = max(self.removed, default=0) + 1
        last = min(oldest + count - 1, len(self.committed))
        self.removed |= set(range(oldest, last + 1))

    @precondition(lambda self: self.dense)
    @rule()
    def the_trimming_is_told(self) -> None:
        self.stream.oldest = Seq(max(self.removed, default=0) + 1)
        self.delivery.raised()

    @precondition(lambda self: not self.dense and self.committed)
    @rule(data=st.data(), size=st.one_of(st.none(), st.integers(1, 30)))
    def a_memory_is_revised_or_deleted(self, data: st.DataObject, size: int | None) -> None:
        seq = data.draw(st.integers(1, len(self.committed)))
        assert self.delivery.revised(Seq(seq), size) == (seq in self.held)
        if size is None:
            self.removed.add(seq)
            self.held = [held for held in self.held if held != seq]

    @invariant()
    def the_window_is_what_is_outstanding(self) -> None:
        if not hasattr(self, "delivery"):
            return
        assert self.delivery.outstanding == len(self.held) == self.share.messages
        assert self.window.messages == self.share.messages + self.other.messages
        assert self.share.messages <= max(1, self.window.max_messages)
        assert self.share.messages or not self.share.bytes

    @invariant()
    def live_means_that_nothing_is_left(self) -> None:
        if hasattr(self, "delivery") and self.delivery.state is State.LIVE:
            assert self.delivery.pushed >= self.stream.top

    def teardown(self) -> None:
        """With room and reads that work, everything still there arrives."""
        if not hasattr(self, "delivery"):
            return
        self.other.free(self.other.messages, self.other.bytes)
        for _ in range(10 * (len(self.committed) + 5)):
            if self.held:
                self.report(self.held[-1])
            self.delivery.retried()
            if self.dense:
                self.the_trimming_is_told()
            if self.delivery.state is State.LAGGING and self.delivery.is_cut:
                self.what_is_lost_is_asked_and_told(0)
            elif self.delivery.state is State.LAGGING:
                self.a_read_begins()
            for ref, after, _ in self.under_way:
                found = self.there_is(after)
                push = self.delivery.refilled(ref, found[:6], at_end=len(found) <= 6)
                self.got(push)
            self.under_way.clear()
        assert self.delivery.state is State.LIVE
        assert self.covered >= self.stream.top


TestAnyOrder = AnyOrder.TestCase
