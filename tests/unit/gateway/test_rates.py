"""Messages and bytes a second, with a burst of one second."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentbus.config import Settings
from agentbus.gateway.rates import Bucket, Rates
from agentbus.model.ids import SessionId

SETTINGS = Settings(send_messages_per_second=10, send_kib_per_second=64, max_message_kib=64)


def test_a_second_of_messages_goes_at_once_and_the_next_has_to_wait() -> None:
    bucket = Bucket(SETTINGS, 0.0)
    assert [bucket.take(1, 0.0) for _ in range(10)] == [0] * 10
    assert bucket.take(1, 0.0) == 100
    assert bucket.take(1, 0.1) == 0


def test_bytes_are_limited_beside_messages() -> None:
    bucket = Bucket(SETTINGS, 0.0)
    assert bucket.take(64 * 1024, 0.0) == 0
    assert bucket.take(32 * 1024, 0.0) == 500
    assert bucket.take(32 * 1024, 0.5) == 0


def test_what_is_refused_takes_nothing() -> None:
    bucket = Bucket(SETTINGS, 0.0)
    bucket.take(64 * 1024, 0.0)
    for _ in range(20):
        assert bucket.take(64 * 1024, 0.0) > 0
    assert bucket.take(1, 1.0) == 0


def test_the_largest_envelope_always_fits_into_the_burst() -> None:
    settings = Settings(send_kib_per_second=64, max_message_kib=1024)
    assert Bucket(settings, 0.0).take(1024 * 1024, 0.0) == 0
    assert Bucket(settings, 0.0).take(8 * 1024 * 1024, 0.0) == 0


def test_a_duplicate_gives_back_what_it_took() -> None:
    bucket = Bucket(SETTINGS, 0.0)
    for _ in range(100):
        assert bucket.take(60_000, 0.0) == 0
        bucket.refund(60_000)
    assert bucket.idle(0.0)


def test_registering_anew_does_not_fill_a_bucket() -> None:
    rates = Rates(SETTINGS)
    while not rates.of(SessionId(1), 0.0).take(1, 0.0):
        pass
    assert rates.of(SessionId(1), 0.0).take(1, 0.0) > 0
    assert rates.of(SessionId(2), 0.0).take(1, 0.0) == 0


def test_idle_buckets_are_forgotten_and_used_ones_are_not() -> None:
    rates = Rates(SETTINGS)
    used = rates.of(SessionId(1), 0.0)
    used.take(1, 0.0)
    for number in range(2, 2 + Rates.PRUNED_ABOVE):
        rates.of(SessionId(number), 0.0)
    assert rates.of(SessionId(1), 0.0) is used


@given(st.lists(st.tuples(st.floats(0, 2), st.integers(1, 70_000)), max_size=60))
def test_no_window_of_time_lets_more_pass_than_its_rate_and_one_burst(
    tries: list[tuple[float, int]],
) -> None:
    bucket = Bucket(SETTINGS, 0.0)
    now, passed = 0.0, []
    for pause, size in tries:
        now += pause
        wait = bucket.take(size, now)
        if wait:
            now += wait / 1000
            assert bucket.take(size, now) == 0
        passed.append((now, min(size, 64 * 1024)))
    for i, (start, _) in enumerate(passed):
        for end, (stop, _) in enumerate(passed[i:], i + 1):
            inside = passed[i:end]
            assert len(inside) <= 10 + 10 * (stop - start) + 1e-6
            assert sum(size for _, size in inside) <= 65536 * (1 + stop - start) + 1e-3
