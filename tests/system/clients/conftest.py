"""A real daemon, and peers of every kind."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from tests.support.daemon import Daemon

FAST = {"send_messages_per_second": 10000, "send_kib_per_second": 65536}
"""Rates that a test's burst does not meet."""

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def bus() -> Iterator[Daemon]:
    with Daemon(**FAST) as daemon:
        daemon.start()
        yield daemon


def resident(pid: int) -> int:
    """Bytes of memory."""
    found: int = psutil.Process(pid).memory_info().rss
    return found


def descriptors(pid: int) -> int:
    """Open ones of a process."""
    found: int = psutil.Process(pid).num_fds()
    return found
