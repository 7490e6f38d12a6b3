"""Credit bounds what is inside the daemon; lanes keep each session's order and take turns."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

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


class Bus:
    """Three sessions before a small credit, and a writer that answers in order."""

    def __init__(self) -> None:
        self.lanes = Lanes(self.submit)
        self.owners = {number: attachment(number) for number in (1, 2, 3)}
        self.inside: list[Submission] = []
        self.owed: list[Submission] = []
        self.submitted: dict[int, list[int]] = defaultdict(list)
        self.offered: dict[int, list[int]] = defaultdict(list)
        self.commit = 0
        self.count = 0

    def submit(self, each: Submission) -> None:
        self.inside.append(each)
        self.submitted[each.attachment.connection.id].append(int(each.message_id))

    def offer(self, number: int, size: int) -> None:
        owner = self.owners[number]
        try:
            owner.lane.require_room(size)
        except RateLimited:
            return
        self.count += 1
        self.offered[number].append(self.count)
        self.lanes.offer(submission(owner, str(self.count), size))

    def answer(self, how: str, amount: int) -> None:
        answered, self.inside = self.inside[:amount], self.inside[amount:]
        if how == "accepted":
            self.commit += 1
            self.owed += answered
            self.lanes.credit.accepted(CommitId(self.commit), [each.call for each in answered])
        else:
            for each in answered:
                self.lanes.credit.give(each.call.size)
        self.lanes.drain()

    def visible(self, behind: int, _: int) -> None:
        freed = self.lanes.credit.visible(CommitId(self.commit - behind))
        self.owed = [each for each in self.owed if each.call not in freed]
        self.lanes.drain()

    def drop(self, number: int, _: int) -> None:
        dropped = {int(each.message_id) for each in self.lanes.drop(self.owners[number])}
        self.offered[number] = [n for n in self.offered[number] if n not in dropped]

    def check(self) -> None:
        used = self.inside + self.owed
        assert self.lanes.credit.operations == len(used) <= 4
        assert self.lanes.credit.bytes == sum(each.call.size for each in used) <= 100
        for number, owner in self.owners.items():
            waiting = [int(each.message_id) for each in owner.lane.waiting]
            assert self.submitted[number] + waiting == self.offered[number]
            assert used or not waiting


@given(st.lists(STEPS, max_size=80))
def test_order_bounds_and_credit_hold_whatever_happens(steps: list[tuple[str, Any, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CREDIT_OPERATIONS", 4)
        patch.setattr(module, "CREDIT_BYTES", 100)
        patch.setattr(module, "LANE_OPERATIONS", 3)
        bus = Bus()
        for step, first, second in steps:
            getattr(bus, step)(first, second)
            bus.check()
