"""Ids sort by the time they were made at, and never repeat."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentbus.client.operation_ids import operation_id
from agentbus.model.ports import Instant
from agentbus.runtime.tokens import SystemTokens

times = st.floats(0, 4e9)


@given(times, times)
def test_a_later_id_sorts_after_an_earlier_one(one: float, other: float) -> None:
    earlier, later = sorted((one, other))
    tokens = SystemTokens()
    first = operation_id(Instant(0, earlier), tokens)
    second = operation_id(Instant(0, later), tokens)
    assert len(first) == len(second) == 32
    assert int(earlier * 1000) == int(later * 1000) or first < second


def test_ids_of_one_moment_differ() -> None:
    now, tokens = Instant(0, 1.8e9), SystemTokens()
    assert len({operation_id(now, tokens) for _ in range(1000)}) == 1000


def test_a_clock_before_1970_makes_ids_too() -> None:
    assert operation_id(Instant(0, -5), SystemTokens()).startswith("0" * 12)
