"""Whatever happens to deliveries, results, reports and epochs: nothing is lost, shown twice, or
reported without having been written."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from agentbus.adapter.inbox import Inbox
from agentbus.wire.rpc import DeliverNote, Expired, Gap, Subscription

STREAMS = (1, 2)
LENGTH = 40
ROOM = 1 << 20


def message(seq: int, content: str = "") -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode({"seq": seq, "content": content}))


def note(
    *seqs: int,
    through: int | None = None,
    epoch: str = "1.0",
    subscription: int = 1,
    gaps: list[Gap] | None = None,
    expired: list[Expired] | None = None,
) -> DeliverNote:
    return DeliverNote(
        attachment="1.1",
        epoch=epoch,
        subscription=subscription,
        channel=f"c{subscription}",
        through=max(seqs) if through is None else through,
        messages=[message(seq) for seq in seqs],
        gaps=gaps or [],
        expired=expired or [],
    )


def subscription(position: int = 0, number: int = 1) -> Subscription:
    return Subscription(
        subscription=number,
        channel=f"c{number}",
        position=position,
        expires_at="2026-12-03T00:00:00.000Z",
        include_own=False,
    )


def attached(*notes: DeliverNote, position: int = 0) -> Inbox:
    inbox = Inbox()
    inbox.attach("1.0", [subscription(position, number) for number in STREAMS])
    for each in notes:
        inbox.deliver(each)
    return inbox


def seqs(batch) -> list[int]:
    return [entry.seq for entry in batch.entries]


def test_messages_come_in_the_order_of_their_arrival_over_all_subscriptions():
    inbox = attached(note(1, 2), note(1, subscription=2), note(3))
    batch = inbox.take(10, ROOM)
    assert [(entry.subscription, entry.seq) for entry in batch.entries] == [
        (1, 1),
        (1, 2),
        (2, 1),
        (1, 3),
    ]


def test_what_is_only_prefetched_or_being_written_is_never_reported():
    inbox = attached(note(1, 2))
    assert inbox.report() == []
    batch = inbox.take(10, ROOM)
    assert inbox.report() == []
    inbox.hand_off(batch)
    assert inbox.report() == [(1, 2)]
    assert inbox.report() == []


def test_a_batch_that_was_not_written_goes_back_to_the_head():
    inbox = attached(note(1, 2, 3, 4))
    first, second = inbox.take(2, ROOM), inbox.take(1, ROOM)
    inbox.restore(first)
    inbox.restore(second)
    assert seqs(inbox.take(10, ROOM)) == [1, 2, 3, 4]


def test_what_was_handed_out_of_turn_waits_for_those_before_it():
    inbox = attached(note(1, 2, 3))
    first, second = inbox.take(2, ROOM), inbox.take(1, ROOM)
    inbox.restore(first)
    inbox.hand_off(second)
    assert inbox.report() == []
    inbox.hand_off(inbox.take(10, ROOM))
    assert inbox.report() == [(1, 3)]


def test_own_messages_after_a_message_are_reported_with_it():
    inbox = attached(note(1, 2, through=5))
    inbox.hand_off(inbox.take(1, ROOM))
    assert inbox.report() == [(1, 1)]
    inbox.hand_off(inbox.take(1, ROOM))
    assert inbox.report() == [(1, 5)]


def test_positions_without_messages_are_passed_when_nothing_is_before_them():
    inbox = attached(note(through=4))
    assert inbox.report() == [(1, 4)]
    inbox.deliver(note(5))
    inbox.deliver(note(through=7))
    assert inbox.report() == []
    inbox.hand_off(inbox.take(1, ROOM))
    assert inbox.report() == [(1, 7)]


def test_a_new_epoch_voids_the_buffer_and_repeats_the_unconfirmed_reports():
    inbox = attached(note(1, 2, 3))
    inbox.hand_off(inbox.take(2, ROOM))
    assert inbox.report() == [(1, 2)]
    inbox.begin("1.1")
    assert len(inbox) == 0
    assert inbox.report() == [(1, 2)]


def test_a_refill_does_not_bring_back_what_was_handed_off():
    inbox = attached(note(1, 2, 3))
    inbox.hand_off(inbox.take(2, ROOM))
    inbox.begin("1.1")
    inbox.deliver(note(1, 2, 3, 4, epoch="1.1"))
    assert seqs(inbox.take(10, ROOM)) == [3, 4]


def test_deliveries_of_another_epoch_are_nothing():
    inbox = attached()
    inbox.deliver(note(1, epoch="0.9"))
    inbox.detach()
    inbox.deliver(note(1))
    assert len(inbox) == 0


def test_what_is_written_across_an_epoch_is_not_shown_again():
    inbox = attached(note(1, 2, 3))
    batch = inbox.take(2, ROOM)
    inbox.begin("1.1")
    inbox.deliver(note(1, 2, 3, epoch="1.1"))
    inbox.hand_off(batch)
    assert inbox.report() == [(1, 2)]
    assert seqs(inbox.take(10, ROOM)) == [3]


def test_what_was_not_written_across_an_epoch_comes_from_either_copy_once():
    inbox = attached(note(1, 2, 3))
    batch = inbox.take(2, ROOM)
    inbox.begin("1.1")
    inbox.deliver(note(1, 2, 3, epoch="1.1"))
    inbox.restore(batch)
    assert seqs(inbox.take(10, ROOM)) == [1, 2, 3]


def test_a_confirmed_report_is_not_repeated():
    inbox = attached(note(1, 2))
    inbox.hand_off(inbox.take(2, ROOM))
    positions = inbox.report()
    inbox.confirm(positions)
    inbox.begin("1.1")
    assert inbox.report() == []
    assert inbox.position(1) == 2


def test_a_refused_report_is_due_again():
    inbox = attached(note(1))
    inbox.hand_off(inbox.take(1, ROOM))
    inbox.unreport(inbox.report())
    assert inbox.report() == [(1, 1)]


def test_leaving_a_channel_voids_what_is_held_of_it():
    inbox = attached(note(1), note(1, subscription=2))
    inbox.unsubscribed("c1")
    inbox.deliver(note(2))
    assert [entry.subscription for entry in inbox.take(10, ROOM).entries] == [2]


def test_what_another_adapter_has_delivered_meanwhile_is_dropped():
    inbox = attached(note(1, 2, 3))
    inbox.attach("2.0", [subscription(2)])
    inbox.deliver(note(3, epoch="2.0"))
    assert seqs(inbox.take(10, ROOM)) == [3]


def test_a_durable_position_behind_ours_is_reported_to_again():
    inbox = attached(note(1, 2, 3))
    inbox.hand_off(inbox.take(3, ROOM))
    inbox.confirm(inbox.report())
    inbox.attach("2.0", [subscription(1)])
    assert inbox.report() == [(1, 3)]


def test_whole_messages_up_to_the_room_and_one_that_is_larger_alone():
    inbox = attached(note(1), note(2), note(3))
    size = len(bytes(message(1))) + 1
    assert seqs(inbox.take(10, 2 * size)) == [1, 2]
    assert seqs(inbox.take(10, 5)) == [3]


def test_a_message_that_does_not_fit_is_the_next_one_alone():
    inbox = attached(note(1))
    inbox.deliver(
        DeliverNote(
            attachment="1.1",
            epoch="1.0",
            subscription=1,
            channel="c1",
            through=3,
            messages=[message(2, "x" * 1000), message(3)],
        )
    )
    assert seqs(inbox.take(10, 500)) == [1]
    assert seqs(inbox.take(10, 500)) == [2]
    assert seqs(inbox.take(10, 500)) == [3]


def test_a_gap_comes_once_and_with_the_message_that_follows_it():
    gap = Gap(channel="c1", after_seq=0, resumed_at_seq=4, lost=3)
    inbox = attached(note(4, 5, gaps=[gap]))
    batch = inbox.take(1, ROOM)
    assert batch.entries[0].gaps == [gap]
    inbox.restore(batch)
    batch = inbox.take(2, ROOM)
    assert [entry.gaps for entry in batch.entries] == [[gap], []]
    inbox.hand_off(batch)
    inbox.begin("1.1")
    inbox.deliver(note(4, 5, 6, epoch="1.1", gaps=[gap]))
    assert [entry.gaps for entry in inbox.take(9, ROOM).entries] == [[]]


def test_a_gap_with_nothing_after_it_comes_alone_and_is_acknowledged():
    gap = Gap(channel="c1", after_seq=0, resumed_at_seq=4, lost=3)
    inbox = attached(note(through=3, gaps=[gap]))
    batch = inbox.take(9, ROOM)
    assert [(entry.message, entry.gaps) for entry in batch.entries] == [(None, [gap])]
    inbox.hand_off(batch)
    assert inbox.report() == [(1, 3)]


def test_an_expiry_is_acknowledged_although_the_position_does_not_move():
    expired = Expired(channel="c1", position=7)
    inbox = attached(position=7)
    inbox.deliver(note(through=7, expired=[expired]))
    batch = inbox.take(9, ROOM)
    assert batch.entries[0].expired == [expired]
    assert inbox.report() == []
    inbox.hand_off(batch)
    positions = inbox.report()
    assert positions == [(1, 7)]
    inbox.begin("1.1")
    inbox.deliver(note(through=7, epoch="1.1", expired=[expired]))
    assert len(inbox) == 0
    assert inbox.report() == positions
    inbox.confirm(positions)
    assert inbox.position(1) is None


class Deliveries(RuleBasedStateMachine):
    """An inbox between a daemon with durable cursors and a harness that cancels and breaks."""

    def __init__(self) -> None:
        super().__init__()
        self.inbox = Inbox()
        self.own: dict[int, set[int]] = {number: set() for number in STREAMS}
        self.durable = dict.fromkeys(STREAMS, 0)
        self.pushed = dict.fromkeys(STREAMS, 0)
        self.epoch = 0
        self.writing = []
        self.reports = []
        self.shown: dict[int, list[int]] = {number: [] for number in STREAMS}
        self.attach()

    def attach(self) -> None:
        subscriptions = [subscription(self.durable[number], number) for number in STREAMS]
        self.inbox.attach(f"1.{self.epoch}", subscriptions)
        self.pushed = dict(self.durable)

    @initialize(own=st.sets(st.integers(1, LENGTH)))
    def some_are_own(self, own: set[int]) -> None:
        self.own[1] = own

    @rule(number=st.sampled_from(STREAMS), count=st.integers(1, 6))
    def push(self, number: int, count: int) -> None:
        first = self.pushed[number] + 1
        self._push(number, first, min(self.pushed[number] + count, LENGTH))

    def _push(self, number: int, first: int, last: int) -> None:
        if first > last:
            return
        theirs = [seq for seq in range(first, last + 1) if seq not in self.own[number]]
        self.pushed[number] = last
        self.inbox.deliver(
            note(*theirs, through=last, epoch=f"1.{self.epoch}", subscription=number)
        )

    @rule(limit=st.integers(1, 5))
    def recv(self, limit: int) -> None:
        batch = self.inbox.take(limit, ROOM)
        if batch.entries:
            self.writing.append(batch)

    @precondition(lambda self: self.writing)
    @rule(which=st.integers(0, 100))
    def written(self, which: int) -> None:
        batch = self.writing.pop(which % len(self.writing))
        for entry in batch.entries:
            self.shown[entry.subscription].append(entry.seq)
        self.inbox.hand_off(batch)

    @precondition(lambda self: self.writing)
    @rule(which=st.integers(0, 100))
    def cancelled(self, which: int) -> None:
        self.inbox.restore(self.writing.pop(which % len(self.writing)))

    @rule()
    def report(self) -> None:
        positions = self.inbox.report()
        if positions:
            self.reports.append((self.epoch, positions))

    @precondition(lambda self: self.reports)
    @rule()
    def committed(self) -> None:
        epoch, positions = self.reports.pop(0)
        if epoch != self.epoch:
            self.inbox.unreport(positions)
            return
        for number, position in positions:
            self.durable[number] = max(self.durable[number], position)
        self.inbox.confirm(positions)

    @rule()
    def rebuilt(self) -> None:
        self.epoch += 1
        self.inbox.begin(f"1.{self.epoch}")
        self.pushed = dict(self.durable)

    @rule(lost=st.booleans())
    def reconnected(self, lost: bool) -> None:
        self.inbox.detach()
        for _, positions in self.reports:
            if not lost:
                for number, position in positions:
                    self.durable[number] = max(self.durable[number], position)
            self.inbox.unreport(positions)
        self.reports.clear()
        self.epoch += 1
        self.attach()

    @invariant()
    def nothing_is_shown_twice(self) -> None:
        for shown in self.shown.values():
            assert len(shown) == len(set(shown))

    @invariant()
    def everything_that_is_acknowledged_was_shown(self) -> None:
        for number in STREAMS:
            due = set(range(1, self.durable[number] + 1)) - self.own[number]
            assert due <= set(self.shown[number])

    def teardown(self) -> None:
        while self.writing:
            self.written(0)
        while self.reports:
            self.committed()
        for number in STREAMS:
            self._push(number, self.pushed[number] + 1, LENGTH)
        while len(self.inbox):
            self.recv(5)
            self.written(0)
        self.report()
        while self.reports:
            self.committed()
        for number in STREAMS:
            assert set(self.shown[number]) == set(range(1, LENGTH + 1)) - self.own[number]
            assert self.durable[number] == LENGTH
        self.nothing_is_shown_twice()


TestDeliveries = Deliveries.TestCase


@given(st.lists(st.integers(1, 5), max_size=8), st.lists(st.integers(1, 4), max_size=8))
def test_without_cancellations_the_order_of_the_stream_is_kept(pushes, takes):
    inbox = attached()
    top = 0
    for count in pushes:
        inbox.deliver(note(*range(top + 1, top + count + 1)))
        top += count
    shown = []
    for limit in [*takes, 1000]:
        batch = inbox.take(limit, ROOM)
        shown += seqs(batch)
        inbox.hand_off(batch)
    assert shown == list(range(1, top + 1))
