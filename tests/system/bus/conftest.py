"""Real daemons and real adapters, each test module in a place of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.daemon import Daemon

FAST = {"send_messages_per_second": 10000, "send_kib_per_second": 65536}
"""Rates that a test's burst does not meet."""


@pytest.fixture(scope="module")
def bus() -> Iterator[Daemon]:
    """A running daemon."""
    with Daemon(**FAST) as daemon:
        daemon.start()
        yield daemon


@pytest.fixture
def cold_bus() -> Iterator[Daemon]:
    """A place in which nothing runs yet."""
    with Daemon(**FAST) as daemon:
        yield daemon
