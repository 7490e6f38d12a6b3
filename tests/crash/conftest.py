"""A running daemon with rates that the senders of these tests do not meet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.daemon import Daemon


@pytest.fixture
def bus() -> Iterator[Daemon]:
    with Daemon(send_messages_per_second=10000, send_kib_per_second=65536) as daemon:
        daemon.start()
        yield daemon
