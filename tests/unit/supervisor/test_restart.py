from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentbus.supervisor.restart import LONGEST_DELAY, TOLERATED, WINDOW, Deaths


def test_five_deaths_in_a_minute_are_tolerated_and_the_sixth_is_not():
    deaths = Deaths()
    delays = [deaths.add(float(n), was_ready=True) for n in range(6)]
    assert None not in delays[:5]
    assert delays[5] is None


def test_a_death_before_ready_counts_double():
    deaths = Deaths()
    assert [deaths.add(0.0, was_ready=False) is None for _ in range(3)] == [False, False, True]


def test_the_first_death_is_repaired_at_once_and_the_next_ones_wait_longer():
    deaths = Deaths()
    assert [deaths.add(0.0, was_ready=True) for _ in range(5)] == [0.0, 0.1, 0.2, 0.4, 0.8]


def test_deaths_are_forgotten_after_a_minute():
    deaths = Deaths()
    for n in range(5):
        deaths.add(float(n), was_ready=True)
    assert deaths.add(WINDOW + 0.5, was_ready=True) is not None
    assert deaths.add(WINDOW + 10, was_ready=True) is not None
    assert Deaths().add(0.0, was_ready=True) == 0.0


@given(st.lists(st.tuples(st.floats(0, 30), st.booleans()), max_size=40))
def test_giving_up_means_more_than_tolerated_within_the_window(steps):
    deaths = Deaths()
    now, history = 0.0, []
    for gap, was_ready in steps:
        now += gap
        history.append((now, 1 if was_ready else 2))
        delay = deaths.add(now, was_ready=was_ready)
        weight = sum(weight for time, weight in history if time > now - WINDOW)
        assert (delay is None) == (weight > TOLERATED)
        assert delay is None or 0 <= delay <= LONGEST_DELAY
