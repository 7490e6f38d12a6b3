"""A daemon with rates that the senders of these tests do not meet, and points to arm in it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.daemon import Daemon
from tests.support.faults import Points


@pytest.fixture
def cold_bus() -> Iterator[Daemon]:
    with Daemon(send_messages_per_second=10000, send_kib_per_second=65536) as daemon:
        yield daemon


@pytest.fixture
def bus(cold_bus: Daemon) -> Daemon:
    cold_bus.start()
    return cold_bus


@pytest.fixture
def points(cold_bus: Daemon) -> Points:
    """Of the daemon, which has to be started afterwards, and of adapters in its environment."""
    points = Points(os.path.join(cold_bus.directory, "points"))
    cold_bus.environment.update(points.environment())
    return points
