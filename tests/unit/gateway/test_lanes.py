"""Credit bounds what is inside the daemon; lanes keep each session's order and take turns."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.errors import RateLimited
from agentbus.gateway import lanes as module
from agentbus.gateway.connections import Attachment, Call, Connection
from agentbus.gateway.lanes import (
    CREDIT_BYTES,
    CREDIT_OPERATIONS,
    LANE_BYTES,
    LANE_OPERATIONS,
    Credit,
    Lanes,
    Submission,
)
from agentbus.model.ids import AttachmentId, CommitId
from agentbus.model.message import Payload
from agentbus.model.window import Window
from agentbus.wire.links import Register


def attachment(number: int) -> Attachment:
    connection = Connection(number, Window(10, 10))
    return Attachment(connection, Register(number, AttachmentId(f"1.{number}"), None, "x", "s"))


def submission(owner: Attachment, name: str, size: int = 1) -> Submission:
    call = Call(owner.connection, b"1", size, 0.0)
    return Submission(call, owner, "general", name, b"", Payload(""))


def names(submitted: list[Submission]) -> list[str]:
    return [each.message_id for each in submitted]


def test_with_credit_an_operation_goes_at_once() -> None:
    submitted: list[Submission] = []
    lanes = Lanes(submitted.append)
    lanes.offer(submission(attachment(1), "a"))
    assert names(submitted) == ["a"]
    assert (lanes.credit.operations, lanes.credit.bytes) == (1, 1)


def test_without_credit_operations_wait_and_lanes_take_turns() -> None:
    submitted: list[Submission] = []
    lanes = Lanes(submitted.append)
    lanes.credit.operations = CREDIT_OPERATIONS
    one, two = attachment(1), attachment(2)
    for owner, name in ((one, "1a"), (one, "1b"), (one, "1c"), (two, "2a")):
        lanes.offer(submission(owner, name))
    assert submitted == []
    lanes.credit.operations = 0
    lanes.drain()
    assert names(submitted) == ["1a", "2a", "1b", "1c"]


def test_nobody_overtakes_a_large_operation_that_waits_for_bytes() -> None:
    submitted: list[Submission] = []
    lanes = Lanes(submitted.append)
    lanes.credit.take(CREDIT_BYTES - 10)
    lanes.offer(submission(attachment(1), "large", 11))
    lanes.offer(submission(attachment(2), "small", 1))
    assert submitted == []
    lanes.credit.give(CREDIT_BYTES - 10)
    lanes.drain()
    assert names(submitted) == ["large", "small"]


def test_a_full_lane_says_when_to_try_again() -> None:
    lane = attachment(1).lane
    lane.require_room(LANE_BYTES)
    for _ in range(LANE_OPERATIONS):
        lane.require_room(1)
        lane.add(submission(attachment(1), "x"))
    with pytest.raises(RateLimited) as caught:
        lane.require_room(1)
    assert caught.value.retry_after_ms == module.RETRY_MS


def test_a_lane_is_full_by_bytes_too() -> None:
    lane = attachment(1).lane
    lane.add(submission(attachment(1), "x", LANE_BYTES))
    with pytest.raises(RateLimited):
        lane.require_room(1)


def test_dropping_a_lane_leaves_the_others() -> None:
    submitted: list[Submission] = []
    lanes = Lanes(submitted.append)
    lanes.credit.operations = CREDIT_OPERATIONS
    one, two = attachment(1), attachment(2)
    lanes.offer(submission(one, "1"))
    lanes.offer(submission(two, "2"))
    assert names(lanes.drop(one)) == ["1"]
    assert lanes.drop(one) == []
    assert one.lane.bytes == 0
    lanes.credit.operations = 0
    lanes.drain()
    assert names(submitted) == ["2"]


def test_dropping_all_lanes_leaves_nothing() -> None:
    lanes = Lanes(lambda _: None)
    lanes.credit.operations = CREDIT_OPERATIONS
    for number in (1, 2):
        lanes.offer(submission(attachment(number), str(number)))
    assert names(lanes.drop_all()) == ["1", "2"]
    assert lanes.drop_all() == []


def test_credit_comes_back_when_the_commit_is_visible() -> None:
    credit = Credit()
    call = submission(attachment(1), "a", 7).call
    credit.take(7)
    assert credit.accepted(CommitId(3), [call]) == []
    assert credit.visible(CommitId(2)) == []
    assert credit.visible(CommitId(3)) == [call]
    assert (credit.operations, credit.bytes) == (0, 0)


def test_credit_comes_back_at_once_when_the_commit_was_visible_before_its_answer() -> None:
    credit = Credit()
    call = submission(attachment(1), "a", 7).call
    credit.take(7)
    credit.visible(CommitId(5))
    assert credit.accepted(CommitId(4), [call]) == [call]
    assert credit.operations == 0


STEPS = st.one_of(
    st.tuples(st.just("offer"), st.integers(1, 3), st.integers(1, 40)),
    st.tuples(st.just("answer"), st.sampled_from(["accepted", "ended"]), st.integers(1, 5)),
    st.tuples(st.just("visible"), st.integers(0, 3), st.just(0)),
    st.tuples(st.just("drop"), st.integers(1, 3), st.just(0)),
)


@given(st.lists(STEPS, max_size=80))
def test_order_bounds_and_credit_hold_whatever_happens(
    steps: list[tuple[str, object, int]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CREDIT_OPERATIONS", 4)
        patch.setattr(module, "CREDIT_BYTES", 100)
        patch.setattr(module, "LANE_OPERATIONS", 3)
        run_steps(steps)


def run_steps(steps: list[tuple[str, object, int]]) -> None:
    inside: list[Submission] = []
    owed: list[Submission] = []
    submitted: dict[int, list[int]] = defaultdict(list)
    offered: dict[int, list[int]] = defaultdict(list)

    def submit(each: Submission) -> None:
        inside.append(each)
        submitted[each.attachment.connection.id].append(int(each.message_id))

    lanes = Lanes(submit)
    owners = {number: attachment(number) for number in (1, 2, 3)}
    commit = 0
    for count, (what, argument, amount) in enumerate(steps):
        if what == "offer":
            owner = owners[int(str(argument))]
            try:
                owner.lane.require_room(amount)
            except RateLimited:
                continue
            offered[owner.connection.id].append(count)
            lanes.offer(submission(owner, str(count), amount))
        elif what == "answer":
            answered, inside[:] = inside[:amount], inside[amount:]
            if argument == "accepted":
                commit += 1
                owed += answered
                lanes.credit.accepted(CommitId(commit), [each.call for each in answered])
            else:
                for each in answered:
                    lanes.credit.give(each.call.size)
            lanes.drain()
        elif what == "visible":
            freed = lanes.credit.visible(CommitId(commit - int(str(argument))))
            owed = [each for each in owed if each.call not in freed]
            lanes.drain()
        else:
            owner = owners[int(str(argument))]
            dropped = {int(each.message_id) for each in lanes.drop(owner)}
            kept = [n for n in offered[owner.connection.id] if n not in dropped]
            offered[owner.connection.id] = kept
        assert lanes.credit.operations == len(inside) + len(owed) <= 4
        assert lanes.credit.bytes == sum(each.call.size for each in inside + owed) <= 100
        for number, done in submitted.items():
            waiting = [int(each.message_id) for each in owners[number].lane.waiting]
            assert done + waiting == offered[number]
        if any(owner.lane.waiting for owner in owners.values()):
            assert inside or owed
