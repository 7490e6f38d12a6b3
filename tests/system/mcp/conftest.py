"""Official MCP clients on real adapters and a real daemon."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.daemon import Daemon


@pytest.fixture(scope="module")
def bus() -> Iterator[Daemon]:
    """A running daemon."""
    with Daemon() as daemon:
        daemon.start()
        yield daemon
