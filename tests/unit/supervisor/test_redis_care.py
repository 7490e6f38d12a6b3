from __future__ import annotations

import pytest

from agentbus.supervisor.redis_care import RedisCare
from agentbus.wire.error_codes import Failure


@pytest.mark.parametrize(
    ("status", "kept"), [(0, True), (-9, True), (-15, True), (1, False), (-11, False)]
)
def test_the_snapshot_is_kept_unless_the_server_ended_of_itself(status, kept):
    care = RedisCare()
    care.ended(status, condemned=False)
    assert care.keep_snapshot is kept


def test_a_new_server_starts_the_count_again():
    care = RedisCare()
    care.ended(1, condemned=False)
    care.started()
    assert care.keep_snapshot


def test_an_unfit_server_loses_its_snapshot_and_leaves_its_reason():
    care = RedisCare()
    care.unfit(Failure("redis_incompatible", "no streams"))
    care.ended(-9, condemned=True)
    assert not care.keep_snapshot
    assert care.complaint == Failure("redis_incompatible", "no streams")


def test_the_time_in_which_the_lock_is_held_is_measured_from_the_first_try():
    care = RedisCare()
    assert care.held(10.0) == 0
    assert care.held(12.0) == 2.0
    care.started()
    assert care.held(20.0) == 0


@pytest.mark.parametrize(
    ("status", "condemned", "code"),
    [
        (-9, False, "unavailable"),
        (-15, False, "unavailable"),
        (0, False, "unavailable"),
        (1, False, "redis_incompatible"),
        (-11, False, "redis_incompatible"),
        (-9, True, "redis_incompatible"),
    ],
)
def test_a_server_that_others_end_is_not_called_unfit(status, condemned, code):
    care = RedisCare()
    care.started()
    care.ended(status, condemned=condemned)
    found = care.verdict("it keeps dying")
    assert found.code == code
    assert found.message.startswith("it keeps dying")


def test_a_server_that_cannot_be_started_is_not_called_unfit():
    assert RedisCare().verdict("no memory").code == "unavailable"


def test_what_was_said_of_an_earlier_server_is_not_said_of_one_that_others_end():
    care = RedisCare()
    care.unfit(Failure("redis_incompatible", "no streams"))
    care.ended(-9, condemned=True)
    assert care.verdict("x").message == "no streams"
    care.started()
    care.ended(-9, condemned=False)
    assert care.verdict("x").code == "unavailable"
