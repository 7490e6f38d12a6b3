"""What all connections hold together stays within its bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentbus.gateway.holdings import Holdings

BOUND = 100


class Holder:
    def __init__(self, holdings: Holdings) -> None:
        self.holdings = holdings
        self.held = 0
        self.ended = False

    def hold(self, size: int) -> None:
        if not self.ended:
            self.held = size
            self.holdings.hold(self, size)

    def cut_off(self) -> None:
        self.ended = True
        self.held = 0
        self.holdings.hold(self, 0)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2 * BOUND))))
def test_the_total_is_what_is_held_and_the_largest_goes(steps: list[tuple[int, int]]) -> None:
    holdings = Holdings(BOUND)
    holders = [Holder(holdings) for _ in range(6)]
    for number, size in steps:
        before = [holder.held for holder in holders if not holder.ended]
        holders[number].hold(size)
        assert holdings.total == sum(holder.held for holder in holders) <= BOUND
        ended = sum(holder.ended for holder in holders)
        assert ended + len(before) >= len(holders)


def test_only_as_many_go_as_must() -> None:
    holdings = Holdings(BOUND)
    holders = [Holder(holdings) for _ in range(3)]
    for holder, size in zip(holders, (50, 40, 20), strict=True):
        holder.hold(size)
    assert [holder.ended for holder in holders] == [True, False, False]


def test_who_alone_is_too_much_goes_alone() -> None:
    holdings = Holdings(BOUND)
    holders = [Holder(holdings) for _ in range(2)]
    holders[0].hold(60)
    holders[1].hold(1000)
    assert [holder.ended for holder in holders] == [False, True]
