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
