"""Credit bounds what is inside the daemon; lanes keep each session's order and take turns."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.errors import RateLimited
from agentbus.gateway import lanes as module
from agentbus.gateway.connections import Call, Connection
from agentbus.gateway.lanes import (
    CREDIT_BYTES,
    CREDIT_OPERATIONS,
    LANE_BYTES,
    LANE_OPERATIONS,
    Credit,
    Lane,
    Lanes,
)
from agentbus.gateway.pending import Operation
from agentbus.model.ids import AttachmentId, CommitId
from agentbus.model.window import Window
from agentbus.wire.links import Renew

CONNECTION = Connection(1, Window(10, 10))


REFS = itertools.count(1)


def operation(name: str, size: int = 1) -> Operation:
    call = Call(CONNECTION, b"1", size, 0.0)
    return Operation(Renew(next(REFS), AttachmentId(name)), None, (call,), size)


def names(operations: list[Operation]) -> list[str]:
    return [str(each.frame.attachment) for each in operations]


def test_with_credit_an_operation_goes_at_once() -> None:
    submitted: list[Operation] = []
    lanes = Lanes(submitted.append)
    lanes.offer(Lane(), operation("a"))
    assert names(submitted) == ["a"]
    assert (lanes.credit.operations, lanes.credit.bytes) == (1, 1)


def test_without_credit_operations_wait_and_lanes_take_turns() -> None:
    submitted: list[Operation] = []
    lanes = Lanes(submitted.append)
    lanes.credit.operations = CREDIT_OPERATIONS
    one, two = Lane(), Lane()
    for owner, name in ((one, "1a"), (one, "1b"), (one, "1c"), (two, "2a")):
        lanes.offer(owner, operation(name))
    assert submitted == []
    lanes.credit.operations = 0
    lanes.drain()
    assert names(submitted) == ["1a", "2a", "1b", "1c"]


def test_nobody_overtakes_a_large_operation_that_waits_for_bytes() -> None:
    submitted: list[Operation] = []
    lanes = Lanes(submitted.append)
    lanes.credit.take(CREDIT_BYTES - 10)
    lanes.offer(Lane(), operation("large", 11))
    lanes.offer(Lane(), operation("small", 1))
    assert submitted == []
    lanes.credit.give(CREDIT_BYTES - 10)
    lanes.drain()
    assert names(submitted) == ["large", "small"]


def test_a_full_lane_says_when_to_try_again() -> None:
    lane = Lane()
    lane.require_room(LANE_BYTES)
    for _ in range(LANE_OPERATIONS):
        lane.require_room(1)
        lane.add(operation("x"))
    with pytest.raises(RateLimited) as caught:
        lane.require_room(1)
    assert caught.value.retry_after_ms == module.RETRY_MS


def test_a_lane_is_full_by_bytes_too() -> None:
    lane = Lane()
    lane.add(operation("x", LANE_BYTES))
    with pytest.raises(RateLimited):
        lane.require_room(1)


def test_dropping_a_lane_leaves_the_others() -> None:
    submitted: list[Operation] = []
    lanes = Lanes(submitted.append)
    lanes.credit.operations = CREDIT_OPERATIONS
    one, two = Lane(), Lane()
    lanes.offer(one, operation("1"))
    lanes.offer(two, operation("2"))
    assert names(lanes.drop(one)) == ["1"]
    assert lanes.drop(one) == []
    assert one.bytes == 0
    lanes.credit.operations = 0
    lanes.drain()
    assert names(submitted) == ["2"]


def test_dropping_all_lanes_leaves_nothing() -> None:
    lanes = Lanes(lambda _: None)
    lanes.credit.operations = CREDIT_OPERATIONS
    for number in (1, 2):
        lanes.offer(Lane(), operation(str(number)))
    assert names(lanes.drop_all()) == ["1", "2"]
    assert lanes.drop_all() == []


# ---- lanes that are held


class Held:
    """Lanes whose operations are inspected."""

    def __init__(self) -> None:
        self.submitted: list[Operation] = []
        self.held: list[tuple[Lane, Operation]] = []
        self.lanes = Lanes(self.submitted.append, lambda *each: self.held.append(each))
        self.one, self.two = Lane(), Lane()
        for owner, name in ((self.one, "1a"), (self.one, "1b"), (self.two, "2a")):
            self.lanes.offer(owner, operation(name))

    @property
    def names(self) -> list[str]:
        return names([each for _, each in self.held])


def test_each_lane_is_held_by_one_operation_at_a_time() -> None:
    held = Held()
    assert (held.names, held.submitted) == (["1a", "2a"], [])
    held.lanes.let_go(held.one, submit=True)
    assert (held.names, names(held.submitted)) == (["1a", "2a", "1b"], ["1a"])
    assert held.lanes.credit.operations == 3


def test_what_is_turned_away_gives_its_credit_back_and_the_next_has_its_turn() -> None:
    held = Held()
    held.lanes.let_go(held.one, submit=False)
    assert (held.names, held.submitted) == (["1a", "2a", "1b"], [])
    assert held.lanes.credit.operations == 2


def test_a_lane_is_dropped_with_what_holds_it() -> None:
    held = Held()
    assert names(held.lanes.drop(held.one)) == ["1a", "1b"]
    held.lanes.let_go(held.one, submit=True)
    assert (held.submitted, held.lanes.credit.operations) == ([], 1)
    assert names(held.lanes.drop_all()) == ["2a"]
    assert held.lanes.credit.operations == 0


# ---- credit


def test_credit_comes_back_when_the_commit_is_visible() -> None:
    credit = Credit()
    (call,) = operation("a", 7).calls
    credit.take(7)
    assert credit.accepted(CommitId(3), [call]) == []
    assert credit.visible(CommitId(2)) == []
    assert credit.visible(CommitId(3)) == [call]
    assert (credit.operations, credit.bytes) == (0, 0)


def test_credit_comes_back_at_once_when_the_commit_was_visible_before_its_answer() -> None:
    credit = Credit()
    (call,) = operation("a", 7).calls
    credit.take(7)
    credit.visible(CommitId(5))
    assert credit.accepted(CommitId(4), [call]) == [call]
    assert credit.operations == 0


STEPS = st.one_of(
    st.tuples(st.just("offer"), st.integers(1, 3), st.integers(1, 40)),
    st.tuples(st.just("answer"), st.sampled_from(["accepted", "ended"]), st.integers(1, 5)),
    st.tuples(st.just("visible"), st.integers(0, 3), st.just(0)),
    st.tuples(st.just("drop"), st.integers(1, 3), st.just(0)),
    st.tuples(st.just("decide"), st.integers(1, 3), st.integers(0, 1)),
)


def counts(operations: list[Operation]) -> list[int]:
    return [int(name.split(".")[1]) for name in names(operations)]


class Bus:
    """Three sessions before a small credit, and a writer that answers in order."""

    def __init__(self, *, inspected: bool) -> None:
        self.lanes = Lanes(self.submit, self.hold if inspected else None)
        self.owners = {number: Lane() for number in (1, 2, 3)}
        self.inside: list[Operation] = []
        self.owed: list[Operation] = []
        self.submitted: dict[int, list[int]] = defaultdict(list)
        self.offered: dict[int, list[int]] = defaultdict(list)
        self.commit = 0
        self.count = 0

    def submit(self, each: Operation) -> None:
        self.inside.append(each)
        number, count = names([each])[0].split(".")
        self.submitted[int(number)].append(int(count))

    def hold(self, owner: Lane, each: Operation) -> None:
        assert owner.held_by is each

    def decide(self, number: int, allowed: int) -> None:
        owner = self.owners[number]
        if not allowed and owner.held_by is not None:
            self.offered[number].remove(counts([owner.held_by])[0])
        self.lanes.let_go(owner, submit=bool(allowed))

    def offer(self, number: int, size: int) -> None:
        owner = self.owners[number]
        try:
            owner.require_room(size)
        except RateLimited:
            return
        self.count += 1
        self.offered[number].append(self.count)
        self.lanes.offer(owner, operation(f"{number}.{self.count}", size))

    def answer(self, how: str, amount: int) -> None:
        answered, self.inside = self.inside[:amount], self.inside[amount:]
        if how == "accepted":
            self.commit += 1
            self.owed += answered
            self.lanes.credit.accepted(CommitId(self.commit), [each.calls[0] for each in answered])
        else:
            for each in answered:
                self.lanes.credit.give(each.size)
        self.lanes.drain()

    def visible(self, behind: int, _: int) -> None:
        freed = self.lanes.credit.visible(CommitId(self.commit - behind))
        self.owed = [each for each in self.owed if each.calls[0] not in freed]
        self.lanes.drain()

    def drop(self, number: int, _: int) -> None:
        dropped = counts(self.lanes.drop(self.owners[number]))
        self.offered[number] = [n for n in self.offered[number] if n not in dropped]

    def check(self) -> None:
        held = [owner.held_by for owner in self.owners.values() if owner.held_by is not None]
        used = self.inside + self.owed + held
        assert self.lanes.credit.operations == len(used) <= 4
        assert self.lanes.credit.bytes == sum(each.size for each in used) <= 100
        for number, owner in self.owners.items():
            holder = [owner.held_by] if owner.held_by is not None else []
            waiting = counts([*holder, *owner.waiting])
            assert self.submitted[number] + waiting == self.offered[number]
            assert used or not waiting


@given(st.lists(STEPS, max_size=80), st.booleans())
def test_order_bounds_and_credit_hold_whatever_happens(
    steps: list[tuple[str, Any, int]], inspected: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CREDIT_OPERATIONS", 4)
        patch.setattr(module, "CREDIT_BYTES", 100)
        patch.setattr(module, "LANE_OPERATIONS", 3)
        bus = Bus(inspected=inspected)
        for step, first, second in steps:
            getattr(bus, step)(first, second)
            bus.check()
