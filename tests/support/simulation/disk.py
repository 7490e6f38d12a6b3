"""What outlives processes: the database's file, on a memory file system where there is one.

SQLite itself is real, and so are the lock of another program and a disk that is full.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from typing import Final

from agentbus import sqlite
from agentbus.store import schema
from agentbus.store.write import WriteStore

SHARED_MEMORY: Final = "/dev/shm"
PAGES: Final = 2**31
"""More than there ever are."""


class Disk:
    """A directory of its own; `close` removes it."""

    def __init__(self) -> None:
        place = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
        self.directory = tempfile.mkdtemp(prefix="ab-sim-", dir=place)
        self.database = os.path.join(self.directory, "bus.db")
        self.index = os.path.join(self.directory, "index.db")
        self._locker: sqlite.Connection | None = None
        self._full = False
        self._store: WriteStore | None = None

    @property
    def exists(self) -> bool:
        """Whether a writer has made the database."""
        return os.path.exists(self.database) and os.path.getsize(self.database) > 0

    def opened(self, store: WriteStore | None) -> None:
        """The store that writes now."""
        self._store = store
        self._limit()

    def lock(self) -> None:
        """Another program begins to write."""
        if self._locker is None and self.exists:
            locker = sqlite.open_writer(
                self.database, synchronous="normal", application_id=schema.APPLICATION_ID
            )
            try:
                locker.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                locker.close()
                return
            self._locker = locker

    def unlock(self) -> None:
        """It goes."""
        if self._locker is not None:
            self._locker.close()
            self._locker = None

    def fill(self, *, full: bool) -> None:
        """No page more can be had, or can again."""
        self._full = full
        self._limit()

    def _limit(self) -> None:
        if self._store is not None:
            pages = 1 if self._full else PAGES  # SQLite makes of 1 what there is
            self._store._connection.execute(f"PRAGMA max_page_count={pages}")

    def changes(self) -> int:
        """Rows changed by the present store, ever."""
        return 0 if self._store is None else self._store._connection.total_changes

    def close(self) -> None:
        """Nothing is left."""
        self.unlock()
        shutil.rmtree(self.directory)
