"""Noticing that the database file was deleted or replaced while it is open."""

from __future__ import annotations

from typing import Final

from agentbus.errors import StorageFailed
from agentbus.model.ports import Instant
from agentbus.store.write import WriteStore

LOOK_SECONDS: Final = 0.1
"""Between looks: what is committed in between, after the file has gone, is lost at a restart."""


class Place:
    """Whether what is committed can be found again."""

    def __init__(self, store: WriteStore) -> None:
        self._store = store
        self._look_at = 0.0
        self._right = True

    def require(self, now: Instant) -> None:
        """Raises StorageFailed while the path does not name the file that is written."""
        if now.monotonic >= self._look_at:
            self._look_at = now.monotonic + LOOK_SECONDS
            self._right = self._store.in_place()
        if not self._right:
            raise StorageFailed(
                f"{self._store.path} was deleted or replaced while the daemon runs; nothing was "
                "stored; move the same file back, or restart with what is there: `agentbus stop`"
            )
