from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.config import MIB, Settings
from agentbus.errors import CapacityExhausted
from agentbus.writer.capacity import MEASURABLE, ROW_OVERHEAD, Capacity, Room, Stored


def capacity(redis: int = 64, sqlite: int = 64, free: int = 25) -> Capacity:
    return Capacity(
        Settings(redis_budget_mib=redis, sqlite_budget_mib=sqlite, cleanup_free_percent=free)
    )


sizes = st.integers(0, 4096 * MIB)


@given(sizes, sizes, sizes, st.integers(64, 65536), st.integers(64, 65536), st.booleans())
def test_what_there_is_room_for_stays_within_both_budgets(
    logical, live, dataset, redis, sqlite, within
):
    budget = capacity(redis, sqlite)
    budget.measured(dataset, live, with_index=within)
    stored = Stored(logical, live)
    room = budget.room(stored)
    if room:
        assert logical + room <= budget.sqlite_limit
        assert budget.projection(live + room) <= budget.redis_limit + 1


def test_a_measure_corrects_the_model():
    budget = capacity()
    live = 10 * MIB
    assert budget.projection(live) == 25 * MIB
    budget.measured(12 * MIB, live)
    assert budget.projection(live) == 22 * MIB
    assert budget.projection(2 * live) == 44 * MIB


def test_an_index_within_redis_is_not_counted_once_more():
    budget = capacity()
    live = 10 * MIB
    budget.measured(30 * MIB, live, with_index=True)
    assert budget.projection(live) == 30 * MIB
    assert budget.room(Stored(live, live)) == pytest.approx((64 - 30) * MIB / 3, abs=1)
    budget.measured(30 * MIB, live)
    assert budget.projection(live) == 40 * MIB


def test_a_measure_of_little_says_nothing_about_the_ratio():
    budget = capacity()
    budget.measured(3 * MIB, 1000)
    assert budget.projection(MEASURABLE * 2) == pytest.approx(3 * MIB + MEASURABLE * 5, rel=0.01)


def test_a_dataset_is_never_believed_to_be_smaller_than_what_it_holds():
    budget = capacity()
    budget.measured(0, 10 * MIB)
    assert budget.projection(10 * MIB) == 20 * MIB


@pytest.mark.parametrize(
    ("stored", "above"),
    [
        (Stored(0, 0), False),
        (Stored(48 * MIB, 0), False),
        (Stored(48 * MIB + 1, 0), True),
        (Stored(0, 19 * MIB), False),
        (Stored(0, 20 * MIB), True),
    ],
)
def test_a_cleanup_goes_on_until_a_quarter_of_both_is_free(stored, above):
    assert capacity().above_target(stored) is above


def test_the_budget_that_binds_is_named():
    budget = capacity()
    assert budget.fullest(Stored(60 * MIB, 0))[0] == "sqlite_budget_mib"
    assert budget.fullest(Stored(20 * MIB, 20 * MIB)) == (
        "redis_budget_mib",
        50 * MIB,
        64 * MIB,
    )


def test_room_is_used_up_row_by_row_and_says_why():
    room = Room(1000 + 2 * ROW_OVERHEAD, "full of memories")
    room.take(500)
    room.take(500)
    assert not room.refused
    with pytest.raises(CapacityExhausted, match="full of memories"):
        room.take(0)
    assert room.refused
