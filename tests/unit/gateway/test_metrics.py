"""Counts, rates and latencies."""

from __future__ import annotations

from agentbus.gateway.alarms import Alarms
from agentbus.gateway.metrics import (
    RATE_SECONDS,
    RECENT_SECONDS,
    SAMPLES,
    Meter,
    Metrics,
    Reservoir,
)
from agentbus.model.ports import Instant


def test_without_samples_there_is_no_percentile() -> None:
    assert Reservoir().percentile_ms(50) is None


def test_percentiles_are_of_the_latest_samples_in_milliseconds() -> None:
    reservoir = Reservoir()
    reservoir.add([9.0] * 10, 1.0)
    reservoir.add([number / 1000 for number in range(SAMPLES)], 2.0)
    assert reservoir.percentile_ms(0) == 0.0
    assert reservoir.percentile_ms(50) == 511.0
    assert reservoir.percentile_ms(99) == 1012.0


def test_a_rate_is_of_the_last_whole_seconds() -> None:
    meter = Meter()
    for second in range(20):
        meter.add(5, float(second))
        meter.add(5, second + 0.5)
    assert meter.total == 200
    assert meter.per_second(20.0) == 10.0
    assert meter.per_second(20.0 + RATE_SECONDS - 1) == 10.0 / RATE_SECONDS
    assert meter.per_second(100.0) == 0.0


def test_the_last_minute_is_told_second_by_second() -> None:
    meter, reservoir = Meter(), Reservoir()
    for second in range(100, 300):
        meter.add(second, second + 0.5)
        if second % 2:
            reservoir.add([0.001, 0.003], second + 0.5)
    assert meter.recent(300.2) == list(range(300 - RECENT_SECONDS, 300))
    assert reservoir.recent_ms(300.2) == [None, 2.0] * (RECENT_SECONDS // 2)
    assert meter.recent(350.0) == [*range(290, 300), *[0] * 50]
    assert meter.recent(1000.0) == [0] * RECENT_SECONDS


def test_latencies_are_measured_from_arrival() -> None:
    alarms = Alarms()
    alarms.set_time(Instant(10.0, 0.0))
    metrics = Metrics(alarms)
    metrics.sends_accepted([9.75])
    metrics.sends_visible([9.5])
    metrics.delivered(3)
    assert metrics.accept.percentile_ms(50) == 250.0
    assert metrics.visible.percentile_ms(50) == 500.0
    assert (metrics.accepted.total, metrics.deliveries.total) == (1, 3)
