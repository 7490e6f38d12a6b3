"""What is outstanding takes room until it is reported, by the message or by the run."""

from __future__ import annotations

import random

from agentbus.model.ids import Seq
from agentbus.model.outstanding import Outstanding
from agentbus.model.window import Share, Window


def made() -> tuple[Outstanding, Share]:
    share = Share(Window(1000, 100_000))
    return Outstanding(share), share


def weights(first: int, last: int) -> list[tuple[Seq, int]]:
    return [(Seq(seq), seq) for seq in range(first, last + 1)]


def push(outstanding: Outstanding, first: int, last: int) -> None:
    run = weights(first, last)
    outstanding.push(run, sum(size for _, size in run))


def test_runs_are_freed_whole_or_in_part() -> None:
    outstanding, share = made()
    push(outstanding, 1, 4)
    push(outstanding, 6, 9)
    assert outstanding.free(Seq(2)) == 2
    assert (len(outstanding), outstanding.first, share.bytes) == (6, 3, 3 + 4 + 30)
    assert outstanding.free(Seq(7)) == 4
    assert (len(outstanding), outstanding.first, share.bytes) == (2, 8, 17)
    assert outstanding.free(Seq(5)) == 0
    assert outstanding.free(Seq(99)) == 2
    assert not outstanding
    assert (share.messages, share.bytes) == (0, 0)


def test_a_run_that_others_have_too_is_left_as_it_is() -> None:
    (one, _), (other, share) = made(), made()
    run = weights(1, 3)
    one.push(run, 6)
    other.push(run, 6)
    one.free(Seq(2))
    assert (len(other), other.first, share.messages, share.bytes) == (3, 1, 3, 6)


def test_a_gap_takes_a_place_and_is_no_message() -> None:
    outstanding, share = made()
    outstanding.push_gap(Seq(5))
    push(outstanding, 6, 6)
    assert (len(outstanding), outstanding.messages, share.messages) == (2, 1, 2)
    assert outstanding.free(Seq(5)) == 0
    assert (len(outstanding), outstanding.messages, share.messages) == (1, 1, 1)


def test_all_room_is_given_back_at_the_end() -> None:
    outstanding, share = made()
    outstanding.push_gap(Seq(2))
    push(outstanding, 3, 9)
    outstanding.free(Seq(4))
    outstanding.clear()
    assert (len(outstanding), share.messages, share.bytes) == (0, 0, 0)


def test_it_counts_as_if_each_message_were_held_by_itself() -> None:
    for seed in range(50):
        rng = random.Random(seed)
        outstanding, share = made()
        held: list[tuple[int, int]] = []
        top = 0
        for _ in range(100):
            if rng.random() < 0.5:
                first = top + rng.randint(1, 2)
                top = first + rng.randint(0, 5)
                push(outstanding, first, top)
                held += weights(first, top)
            else:
                position = rng.randint(max(0, top - 12), top)
                freed = [each for each in held if each[0] <= position]
                held = held[len(freed) :]
                assert outstanding.free(Seq(position)) == len(freed)
            assert len(outstanding) == share.messages == len(held)
            assert share.bytes == sum(size for _, size in held)
            assert not held or outstanding.first == held[0][0]
