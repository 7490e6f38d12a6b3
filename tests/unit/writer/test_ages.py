from __future__ import annotations

from agentbus.model.ports import Instant
from agentbus.writer.ages import SUSPENDED_SECONDS, Ages


def at(seconds: float, shift: float = 0.0) -> Instant:
    return Instant(seconds, 1e9 + seconds + shift)


def test_a_steady_clock_is_trusted():
    ages = Ages()
    assert not any(ages.observe(at(n * 100.0)) for n in range(100))
    assert ages.trusted(at(10_000.0))


def test_small_corrections_are_no_jump():
    ages = Ages()
    ages.observe(at(0))
    assert not ages.observe(at(1, shift=299))
    assert not ages.observe(at(2, shift=598))
    assert ages.trusted(at(2))


def test_a_jump_in_either_direction_suspends_age_rules_for_an_hour():
    for shift in (86_400.0, -86_400.0):
        ages = Ages()
        ages.observe(at(0))
        assert ages.observe(at(10, shift))
        assert round(ages.jump) == shift
        assert not ages.observe(at(11, shift))
        assert not ages.trusted(at(10 + SUSPENDED_SECONDS - 1))
        assert ages.trusted(at(10 + SUSPENDED_SECONDS))


def test_jumping_back_suspends_anew():
    ages = Ages()
    ages.observe(at(0))
    assert ages.observe(at(10, 86_400))
    assert ages.observe(at(3000))
    assert not ages.trusted(at(10 + SUSPENDED_SECONDS))


DAY = 86_400.0


def patient(ages: Ages, now: Instant) -> float:
    """How far behind the wall clock the time of cursors is, in seconds."""
    return round(now.wall - ages.patient(now) / 1000)


def test_cursors_do_not_see_a_leap_forward_for_an_hour():
    ages = Ages()
    ages.observe(at(0))
    assert patient(ages, at(5)) == 0
    ages.observe(at(10, 3 * DAY))
    assert patient(ages, at(10, 3 * DAY)) == 3 * DAY
    assert patient(ages, at(3000, 3 * DAY)) == 3 * DAY
    assert patient(ages, at(10 + SUSPENDED_SECONDS, 3 * DAY)) == 0


def test_leaps_within_an_hour_add_up_and_older_ones_do_not():
    ages = Ages()
    ages.observe(at(0))
    ages.observe(at(10, DAY))
    ages.observe(at(1000, 2 * DAY))
    assert patient(ages, at(1000, 2 * DAY)) == 2 * DAY
    ages.observe(at(9000, 3 * DAY))
    assert patient(ages, at(9000, 3 * DAY)) == DAY


def test_a_clock_set_back_makes_cursors_no_older():
    ages = Ages()
    ages.observe(at(0))
    ages.observe(at(10, -DAY))
    assert patient(ages, at(10, -DAY)) == 0
    ages.observe(at(20))
    assert patient(ages, at(20)) == DAY


def test_a_leap_that_is_taken_back_is_none():
    ages = Ages()
    ages.observe(at(0))
    ages.observe(at(10, DAY))
    ages.observe(at(20))
    assert patient(ages, at(20)) == 0
