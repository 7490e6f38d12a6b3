from __future__ import annotations

import pytest

from agentbus.supervisor.redis_care import RedisCare
from agentbus.wire.error_codes import Failure


@pytest.mark.parametrize(
    ("status", "kept"), [(0, True), (-9, True), (-15, True), (1, False), (-11, False)]
)
def test_the_snapshot_is_kept_unless_the_server_ended_of_itself(status, kept):
    care = RedisCare()
    care.ended(status)
    assert care.keep_snapshot is kept


def test_a_new_server_starts_the_count_again():
    care = RedisCare()
    care.ended(1)
    care.started()
    assert care.keep_snapshot


def test_an_unfit_server_loses_its_snapshot_and_leaves_its_reason():
    care = RedisCare()
    care.unfit(Failure("redis_incompatible", "no streams"))
    care.ended(-9)
    assert not care.keep_snapshot
    assert care.complaint == Failure("redis_incompatible", "no streams")


def test_the_time_in_which_the_lock_is_held_is_measured_from_the_first_try():
    care = RedisCare()
    assert care.held(10.0) == 0
    assert care.held(12.0) == 2.0
    care.started()
    assert care.held(20.0) == 0
