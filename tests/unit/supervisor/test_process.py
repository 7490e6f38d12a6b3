from __future__ import annotations

from agentbus.model.ports import Instant
from agentbus.supervisor.process import HALTED_LIMIT, SILENCE_LIMIT, Process
from agentbus.wire.links import ProcessInfo


def started(now: float = 0.0) -> Process:
    process = Process("writer")
    process.forked(7, "", Instant(now, 1000.0 + now))
    return process


def test_a_silent_process_is_at_fault_after_thirty_seconds():
    process = started()
    assert process.fault(SILENCE_LIMIT) is None
    assert process.fault(SILENCE_LIMIT + 0.1) == "silent"
    process.heard(20.0)
    assert process.fault(SILENCE_LIMIT + 0.1) is None


def test_redis_is_not_expected_to_say_anything():
    redis = Process("redis", beats=False)
    redis.forked(7, "/s", Instant(0.0, 0.0))
    assert redis.fault(1e6) is None


def test_a_process_seen_stopped_for_two_seconds_is_at_fault():
    process = started()
    process.seen("stopped", 1.0)
    assert process.fault(1.0 + HALTED_LIMIT - 0.1) is None
    process.seen("stopped", 2.0)
    assert process.fault(1.0 + HALTED_LIMIT) == "stopped"


def test_a_process_that_goes_on_is_forgiven():
    process = started()
    process.seen("stopped", 1.0)
    process.seen("running", 2.0)
    process.seen("stopped", 3.0)
    assert process.fault(4.0) is None


def test_time_in_which_nobody_looked_does_not_count():
    process = started()
    process.seen("stopped", 1.0)
    process.excuse(100.0)
    assert process.fault(101.0) is None


def test_a_successor_starts_with_a_clean_slate():
    process = started()
    process.seen("stopped", 1.0)
    process.deadline = 3.0
    process.state = process.state.ABSENT
    process.forked(8, "", Instant(50.0, 1050.0))
    assert process.fault(50.0 + SILENCE_LIMIT) is None
    assert process.deadline is None
    assert process.info() == ProcessInfo("writer", 8, 1050.0, 1)
