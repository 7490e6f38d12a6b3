"""What outlives processes: the database's file, on a memory file system where there is one.

SQLite itself is real, and so is what goes wrong with it: the lock of another program, a disk that
is full, one that takes no more bytes in the middle of a write (an I/O error to SQLite), a file that
may not be written to, and descriptors that have run out.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from typing import Final

from agentbus import sqlite
from agentbus.runtime.paths import instance_mark
from agentbus.store import schema
from agentbus.store.write import WriteStore

SHARED_MEMORY: Final = "/dev/shm"
PAGES: Final = 2**31
"""More than there ever are."""


FILES: Final = ("", "-wal", "-shm")
"""What SQLite keeps beside a database, by its ending."""

Limit = tuple[int, int]
"""Of this process: which resource, and how much of it."""


class Disk:
    """A directory of its own; `close` removes it."""

    def __init__(self) -> None:
        place = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
        self.directory = tempfile.mkdtemp(prefix="ab-sim-", dir=place)
        self.database = os.path.join(self.directory, "bus.db")
        self.index = os.path.join(self.directory, "index.db")
        self._locker: sqlite.Connection | None = None
        self._full = False
        self._protected = False
        self._trouble: Limit | None = None
        self._store: WriteStore | None = None
        self.half_wiped = False
        """A reset was interrupted: the rest is removed before the next daemon starts."""

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

    def protect(self, *, protected: bool) -> None:
        """The database may not be written to, or may again."""
        self._protected = protected
        self._limit()

    def _limit(self) -> None:
        if self._store is not None:
            pages = 1 if self._full else PAGES  # SQLite makes of 1 what there is
            self._store._connection.execute(f"PRAGMA max_page_count={pages}")
            self._store._connection.execute(f"PRAGMA query_only={int(self._protected)}")

    def break_writes(self, after: int) -> None:
        """No file can grow beyond so many bytes more than the write-ahead log has now."""
        wal = self.database + "-wal"
        size = os.path.getsize(wal) if os.path.exists(wal) else 0
        self._trouble = (resource.RLIMIT_FSIZE, max(0, size + after))

    def break_opens(self) -> None:
        """No more files can be opened."""
        self._trouble = (resource.RLIMIT_NOFILE, 0)

    def mend(self) -> None:
        """All is well again."""
        self._trouble = None
        self.fill(full=False)
        self.protect(protected=False)

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Around what a process of the bus does: within it the trouble is real."""
        with _limited(self._trouble):
            yield

    @contextlib.contextmanager
    def looked_at(self) -> Iterator[None]:
        """Around what the test itself looks at, within `used`."""
        with _limited(None if self._trouble is None else (self._trouble[0], -1)):
            yield

    def wipe(self, files: int | None = None) -> bool:
        """Removes the bus' data, or only so many files of it; whether nothing is left of it."""
        left = [file + end for file in (self.index, self.database) for end in FILES]
        left.append(instance_mark(self.database))
        for path in left[:files]:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        self.half_wiped = any(map(os.path.exists, left))
        return not self.half_wiped

    def lose_index(self) -> None:
        """Somebody removes the index."""
        for end in FILES:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.index + end)

    def changes(self) -> int:
        """Rows changed by the present store, ever."""
        return 0 if self._store is None else self._store._connection.total_changes

    def close(self) -> None:
        """Nothing is left."""
        self.unlock()
        shutil.rmtree(self.directory)


@contextlib.contextmanager
def _limited(limit: Limit | None) -> Iterator[None]:
    if limit is None:
        yield
        return
    which, much = limit
    soft, hard = resource.getrlimit(which)
    resource.setrlimit(which, (hard if much < 0 else much, hard))
    try:
        yield
    finally:
        resource.setrlimit(which, (soft, hard))
