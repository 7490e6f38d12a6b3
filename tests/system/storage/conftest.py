"""Buses on disks of their own, which may be small, full or read-only."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.support.daemon import Daemon
from tests.support.storage import Disk

Place = Callable[..., Daemon]


@pytest.fixture
def place() -> Iterator[Place]:
    """Makes places in which nothing runs yet, with settings of their own."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(Daemon(**settings))


@pytest.fixture
def disk() -> Iterator[Callable[[int], Disk]]:
    """Makes small disks. Skips where nothing may be mounted."""
    if sys.platform != "linux" or os.getuid() != 0:
        pytest.skip("mounting a small file system needs Linux and root")
    with ExitStack() as stack:
        yield lambda mib: stack.enter_context(Disk(mib))
