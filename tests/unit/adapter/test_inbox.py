"""What becomes of messages, gaps, expiries and revisions that were pushed to a session."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from agentbus.adapter.inbox import Batch, Inbox
from agentbus.wire.rpc import DeliverNote, Expired, Gap, ReviseNote, RevokeNote, Subscription

STREAMS = (1, 2)
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


def with_a_stray() -> tuple[Inbox, Batch]:
    """The second message is being written; the first was cancelled, then an epoch began."""
    inbox = attached(note(1, 2))
    first, second = inbox.take(1, ROOM), inbox.take(1, ROOM)
    inbox.restore(first)
    inbox.begin("1.1")
    return inbox, second


def test_what_was_written_out_of_turn_before_its_copy_came_is_not_shown_again():
    inbox, second = with_a_stray()
    inbox.hand_off(second)
    inbox.deliver(note(1, 2, 3, epoch="1.1"))
    batch = inbox.take(9, ROOM)
    assert seqs(batch) == [1, 3]
    inbox.hand_off(batch)
    assert inbox.report() == [(1, 3)]


def test_what_is_written_out_of_turn_after_its_copy_came_is_not_shown_again():
    inbox, second = with_a_stray()
    inbox.deliver(note(1, 2, 3, epoch="1.1"))
    first = inbox.take(9, ROOM)
    assert seqs(first) == [1]
    assert inbox.take(9, ROOM).entries == []
    inbox.hand_off(second)
    last = inbox.take(9, ROOM)
    assert seqs(last) == [3]
    inbox.hand_off(first)
    inbox.hand_off(last)
    assert inbox.report() == [(1, 3)]


def test_what_was_not_written_out_of_turn_is_shown_by_its_copy():
    inbox, second = with_a_stray()
    inbox.deliver(note(1, 2, epoch="1.1"))
    inbox.restore(second)
    assert seqs(inbox.take(9, ROOM)) == [1, 2]


def test_a_gap_of_which_all_was_shown_is_none():
    inbox, second = with_a_stray()
    gap = Gap(channel="c1", after_seq=1, resumed_at_seq=3, lost=1)
    inbox.deliver(note(1, epoch="1.1"))
    inbox.deliver(note(through=2, epoch="1.1", gaps=[gap]))
    inbox.hand_off(second)
    batch = inbox.take(9, ROOM)
    assert [(entry.seq, entry.gaps) for entry in batch.entries] == [(1, [])]
    inbox.hand_off(batch)
    assert inbox.report() == [(1, 2)]


def test_a_gap_that_was_shown_with_a_message_is_not_shown_with_its_copy():
    gap = Gap(channel="c1", after_seq=1, resumed_at_seq=4, lost=2)
    inbox = attached(note(1))
    inbox.deliver(note(4, gaps=[gap]))
    first, second = inbox.take(1, ROOM), inbox.take(1, ROOM)
    inbox.restore(first)
    inbox.begin("1.1")
    inbox.deliver(note(1, epoch="1.1"))
    inbox.deliver(note(4, 5, epoch="1.1", gaps=[gap]))
    inbox.hand_off(second)
    assert gaps_of(second) == [(1, 4, 2)]
    batch = inbox.take(9, ROOM)
    assert (seqs(batch), gaps_of(batch)) == ([1, 5], [])


def test_what_is_written_of_a_channel_that_was_left_counts_for_nothing():
    inbox = attached(note(1))
    batch = inbox.take(1, ROOM)
    inbox.unsubscribed("c1")
    inbox.hand_off(batch)
    inbox.restore(inbox.take(1, ROOM))
    assert inbox.report() == []


def test_a_report_of_what_is_gone_meanwhile_is_nothing():
    inbox = attached(note(1))
    inbox.hand_off(inbox.take(1, ROOM))
    positions = inbox.report()
    inbox.unsubscribed("c1")
    inbox.confirm(positions)
    inbox.unreport(positions)
    assert inbox.report() == []


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


def test_a_gap_without_loss_is_none():
    gap = Gap(channel="c1", after_seq=0, resumed_at_seq=4, lost=0)
    inbox = attached(note(4, gaps=[gap]), note(through=6, gaps=[gap]))
    assert [entry.gaps for entry in inbox.take(9, ROOM).entries] == [[]]


def gaps_of(batch) -> list[tuple[int, int, int]]:
    return [
        (gap.after_seq, gap.resumed_at_seq, gap.lost)
        for entry in batch.entries
        for gap in entry.gaps
    ]


def test_a_gap_leaves_out_what_was_shown_and_not_confirmed():
    inbox = attached(note(1, 2))
    inbox.hand_off(inbox.take(9, ROOM))
    inbox.begin("1.1")
    gap = Gap(channel="c1", after_seq=0, resumed_at_seq=5, lost=4)
    inbox.deliver(note(5, epoch="1.1", gaps=[gap]))
    assert gaps_of(inbox.take(9, ROOM)) == [(2, 5, 2)]


def test_a_gap_leaves_out_what_was_shown_and_confirmed_while_it_waited():
    inbox = attached(note(1, 2))
    writing = inbox.take(2, ROOM)
    inbox.begin("1.1")
    gap = Gap(channel="c1", after_seq=0, resumed_at_seq=5, lost=4)
    inbox.deliver(note(5, epoch="1.1", gaps=[gap]))
    inbox.hand_off(writing)
    inbox.confirm(inbox.report())
    assert gaps_of(inbox.take(9, ROOM)) == [(2, 5, 2)]


def test_a_gap_that_grows_is_told_by_the_rest():
    first = Gap(channel="c1", after_seq=0, resumed_at_seq=3, lost=2)
    inbox = attached(note(3, gaps=[first]))
    inbox.hand_off(inbox.take(9, ROOM))
    inbox.begin("1.1")
    grown = Gap(channel="c1", after_seq=0, resumed_at_seq=6, lost=5)
    inbox.deliver(note(6, epoch="1.1", gaps=[grown]))
    assert gaps_of(inbox.take(9, ROOM)) == [(3, 6, 2)]


def test_a_gap_waits_for_what_of_it_is_being_written():
    inbox = attached(note(1, 2))
    first, second = inbox.take(1, ROOM), inbox.take(1, ROOM)
    inbox.restore(first)
    inbox.begin("1.1")
    gap = Gap(channel="c1", after_seq=0, resumed_at_seq=4, lost=3)
    inbox.deliver(note(4, epoch="1.1", gaps=[gap]))
    assert inbox.take(9, ROOM).entries == []
    inbox.hand_off(second)
    assert gaps_of(inbox.take(9, ROOM)) == [(2, 4, 2)]


# expiry


def expiry(number: int = 1, at: int = 7, through: int | None = None, epoch: str = "1.0"):
    return note(
        through=at if through is None else through,
        epoch=epoch,
        subscription=number,
        expired=[Expired(channel=f"c{number}", position=at)],
    )


def test_an_expiry_is_acknowledged_although_the_position_does_not_move():
    inbox = attached(position=7)
    inbox.deliver(expiry())
    batch = inbox.take(9, ROOM)
    assert batch.entries[0].expired == [Expired(channel="c1", position=7)]
    assert inbox.report() == []
    inbox.hand_off(batch)
    positions = inbox.report()
    assert positions == [(1, 7)]
    inbox.confirm(positions)
    assert inbox.position(1) is None


def test_an_expiry_is_told_once_and_acknowledged_again_when_the_daemon_tells_it_again():
    inbox = attached(position=7)
    inbox.deliver(expiry())
    inbox.hand_off(inbox.take(9, ROOM))
    assert inbox.report() == [(1, 7)]
    inbox.begin("1.1")
    assert inbox.report() == []
    inbox.deliver(expiry(epoch="1.1"))
    assert len(inbox) == 0
    assert inbox.report() == [(1, 7)]
    inbox.attach("2.0", [subscription(7, 2)])
    assert inbox.report() == []
    inbox.deliver(expiry(epoch="2.0"))
    assert len(inbox) == 0
    assert inbox.report() == [(1, 7)]


def test_an_expiry_that_was_not_written_comes_again_in_the_next_epoch():
    inbox = attached(position=7)
    inbox.deliver(expiry())
    inbox.begin("1.1")
    assert len(inbox) == 0
    inbox.deliver(expiry(epoch="1.1"))
    assert len(inbox) == 1


def test_an_expiry_that_is_being_written_is_not_told_twice():
    inbox = attached(position=7)
    inbox.deliver(expiry())
    batch = inbox.take(9, ROOM)
    inbox.attach("2.0", [subscription(7, 2)])
    inbox.deliver(expiry(epoch="2.0"))
    assert len(inbox) == 0
    inbox.hand_off(batch)
    assert inbox.report() == [(1, 7)]


def test_what_is_buffered_of_a_cursor_that_has_run_out_is_void():
    inbox = attached(note(1, 2, 3))
    writing = inbox.take(1, ROOM)
    inbox.deliver(expiry(at=0, through=4))
    assert [entry.seq for entry in inbox.take(9, ROOM).entries] == [4]
    inbox.restore(writing)
    assert len(inbox) == 0


def test_what_was_handed_off_of_a_cursor_that_has_run_out_is_not_reported():
    inbox = attached(note(1, 2, 3))
    writing = inbox.take(1, ROOM)
    inbox.deliver(expiry(at=0, through=4))
    inbox.hand_off(writing)
    assert inbox.report() == []
    inbox.hand_off(inbox.take(9, ROOM))
    assert inbox.report() == [(1, 4)]


def test_an_expiry_leaves_other_subscriptions_alone():
    inbox = attached(note(1, 2), note(1, 2, subscription=2))
    inbox.deliver(expiry(at=0, through=3))
    batch = inbox.take(9, ROOM)
    assert [(entry.subscription, entry.seq) for entry in batch.entries] == [(2, 1), (2, 2), (1, 3)]


def test_subscribing_anew_forgets_the_expiry():
    inbox = attached(position=7)
    inbox.deliver(expiry())
    inbox.subscribed(9, "c1", 12)
    assert len(inbox) == 0
    assert inbox.report() == []


def test_subscribing_anew_voids_what_is_held_of_a_cursor_whose_end_was_not_told():
    inbox = attached(note(1, 2), note(1, subscription=2))
    writing = inbox.take(1, ROOM)
    inbox.subscribed(9, "c1", 12)
    inbox.deliver(note(3))
    inbox.hand_off(writing)
    assert [entry.subscription for entry in inbox.take(9, ROOM).entries] == [2]
    assert inbox.report() == []


def test_subscribing_again_keeps_what_is_held():
    inbox = attached(note(1, 2))
    inbox.subscribed(1, "c1", 0)
    assert seqs(inbox.take(9, ROOM)) == [1, 2]


# memories


def memory(seq: int, content: str = "") -> msgspec.Raw:
    document = {"seq": seq, "content": content, "memory_id": f"k{seq}", "revision": 1}
    return msgspec.Raw(msgspec.json.encode(document))


def memories(*seqs: int, epoch: str = "1.0") -> DeliverNote:
    changed = {"messages": [memory(seq, "old") for seq in seqs]}
    return msgspec.structs.replace(note(*seqs, epoch=epoch), **changed)


def revise(seq: int, content: str = "new", epoch: str = "1.0") -> ReviseNote:
    return ReviseNote(
        attachment="1.1",
        epoch=epoch,
        subscription=1,
        seq=seq,
        memory_id=f"k{seq}",
        message=memory(seq, content),
    )


def revoke(seq: int, epoch: str = "1.0") -> RevokeNote:
    return RevokeNote(attachment="1.1", epoch=epoch, subscription=1, seq=seq, memory_id=f"k{seq}")


def contents(batch) -> list[str]:
    return [msgspec.json.decode(entry.message)["content"] for entry in batch.entries]


def test_a_revised_memory_is_shown_as_it_is_now():
    inbox = attached(memories(1, 2, 3))
    assert inbox.revise(revise(2)) == []
    assert contents(inbox.take(9, ROOM)) == ["old", "new", "old"]


def test_a_deleted_memory_is_passed_over_and_its_position_counts():
    inbox = attached(memories(1, 2, 3))
    inbox.revise(revoke(1))
    assert inbox.report() == [(1, 1)]
    inbox.revise(revoke(3))
    batch = inbox.take(9, ROOM)
    assert seqs(batch) == [2]
    inbox.hand_off(batch)
    assert inbox.report() == [(1, 3)]


def test_a_deleted_memory_that_was_the_last_one_leaves_nothing():
    inbox = attached(memories(1))
    inbox.revise(revoke(1))
    assert len(inbox) == 0
    assert inbox.take(9, ROOM).entries == []


def test_a_deleted_memory_leaves_the_gap_before_it():
    gap = Gap(channel="c1", after_seq=0, resumed_at_seq=4, lost=3)
    inbox = attached(msgspec.structs.replace(memories(4), gaps=[gap]))
    inbox.revise(revoke(4))
    batch = inbox.take(9, ROOM)
    assert [(entry.message, entry.gaps) for entry in batch.entries] == [(None, [gap])]


def test_what_is_being_written_is_told_and_comes_back_changed():
    inbox = attached(memories(1, 2))
    batch = inbox.take(9, ROOM)
    (entry,) = inbox.revise(revise(2))
    assert batch.holds([entry])
    assert not batch.holds([])
    inbox.restore(batch)
    assert contents(inbox.take(9, ROOM)) == ["old", "new"]


def test_what_is_being_written_and_was_deleted_does_not_come_back():
    inbox = attached(memories(1, 2))
    batch = inbox.take(9, ROOM)
    assert len(inbox.revise(revoke(1))) == 1
    inbox.restore(batch)
    assert inbox.report() == [(1, 1)]
    assert seqs(inbox.take(9, ROOM)) == [2]


def test_a_change_of_what_was_handed_off_or_is_not_held_is_nothing():
    inbox = attached(memories(1, 2))
    inbox.hand_off(inbox.take(1, ROOM))
    for each in (revise(1), revoke(1), revise(9), revoke(9), revise(2, epoch="0.9")):
        assert inbox.revise(each) == []
    assert contents(inbox.take(9, ROOM)) == ["old"]


def test_a_memory_of_an_earlier_epoch_that_was_not_written_is_left_to_the_new_one():
    inbox = attached(memories(1, 2))
    first, second = inbox.take(1, ROOM), inbox.take(1, ROOM)
    inbox.begin("1.1")
    inbox.restore(first)
    assert inbox.take(9, ROOM).entries == []
    inbox.restore(second)
    inbox.deliver(memories(2, epoch="1.1"))
    assert seqs(inbox.take(9, ROOM)) == [2]


def test_a_memory_of_an_earlier_epoch_is_refreshed_by_what_comes_again():
    inbox = attached(memories(1, 2))
    batch = inbox.take(9, ROOM)
    inbox.begin("1.1")
    new = msgspec.structs.replace(note(2, epoch="1.1"), messages=[memory(2, "new")])
    inbox.deliver(new)
    inbox.restore(batch)
    assert contents(inbox.take(9, ROOM)) == ["new"]


def test_a_batch_knows_whether_it_holds_memories():
    inbox = attached(memories(1), note(2))
    assert inbox.take(1, ROOM).holds_memories
    assert not inbox.take(1, ROOM).holds_memories


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
