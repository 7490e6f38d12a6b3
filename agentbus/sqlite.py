"""Opening SQLite files and transactions on them: the only caller of `sqlite3.connect`.

All files are in WAL mode. The writer's connection never waits for a lock (`busy_timeout` 0): who
holds it back is told by `Busy`, and the writer's loop tries again while it answers other things.

The WAL: SQLite checkpoints by itself when `AUTOCHECKPOINT_PAGES` are in it, and reuses the file
from its start once readers let it. Where they don't, the file grows; from `WAL_RESTART_BYTES` on
the writer asks for `truncate` until it is through, so that the file stays under 64 MiB.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Literal
from urllib.parse import quote

from agentbus.errors import AgentbusError, DatabaseDamaged, StorageFailed, UnsafePermissions

PAGE_BYTES: Final = 4096
AUTOCHECKPOINT_PAGES: Final = 4096
"""16 MiB: random keys (message ids) hit the same pages again in this span, so it saves writing."""

WAL_KEEP_BYTES: Final = 20 * 1024 * 1024
"""What the WAL file is cut to when it is reused: somewhat above what an automatic checkpoint
leaves, as growing a file anew makes commits dearer than overwriting it."""

WAL_RESTART_BYTES: Final = 32 * 1024 * 1024

LIBRARY: Final = sqlite3.sqlite_version
"""The version of SQLite that Python uses."""

_CACHE_KIB: Final = 16 * 1024
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_FAILED: Final = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_NOLFS,
    }
)
_ADVICE: Final = {
    sqlite3.SQLITE_FULL: "free some space on that disk",
    sqlite3.SQLITE_READONLY: "make the file and its directory writable",
    sqlite3.SQLITE_PERM: "make the file and its directory writable",
}


class Busy(StorageFailed):
    """Another connection holds the lock; nothing was done, and trying again is right."""


def translate(error: sqlite3.Error, path: str) -> AgentbusError | None:
    """What an error of SQLite means to the bus; None for a fault of the program."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in _BUSY:
        return Busy(
            f"{path} is locked by another program ({error}); nothing was stored; try again "
            "when that is done with it"
        )
    if code in _DAMAGED:
        return DatabaseDamaged(
            f"{path} is damaged ({error}) and was left as it is; put a backup in its place, or "
            "run `agentbus reset`, which destroys all messages"
        )
    if code in _FAILED:
        advice = _ADVICE.get(code, "check the disk and the permissions")
        return StorageFailed(f"{path}: {error}; nothing was stored; {advice}, then try again")
    return None


class translated:  # noqa: N801 - used like a function
    """Within it, errors of SQLite come out as Busy, StorageFailed or DatabaseDamaged."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, sqlite3.Error):
            meaning = translate(error, self._path)
            if meaning is not None:
                raise meaning from error


class Connection(sqlite3.Connection):
    """A connection that knows its file."""

    path: str = ""

    identity: tuple[int, int] | None = None
    """Device and inode of the file that a writer opened; None: not to be looked after."""

    def transaction(self) -> Transaction:
        """One write transaction: all of it or nothing.

        Raises Busy at once where somebody else writes. An error of the body, or of the commit,
        rolls back and comes out as it is, whatever the rollback meets.
        """
        return Transaction(self)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Reads within it see one state of the database. Keep it short: it holds the WAL back."""
        with translated(self.path):
            self.execute("BEGIN")
            try:
                yield
            finally:
                self.roll_back()

    def roll_back(self) -> None:
        """Gives up the transaction that is under way, if one is."""
        if self.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                self.execute("ROLLBACK")

    def checkpoint(self, mode: Literal["passive", "truncate"]) -> bool:
        """Moves the WAL into the database as far as readers let it; whether all of it went.

        `passive` waits for nobody and disturbs nobody. `truncate` then also empties the file.
        """
        with translated(self.path):
            busy, in_wal, moved = self.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        return not busy and in_wal == moved

    def in_place(self) -> bool:
        """Whether the path still names the file that was opened.

        Otherwise SQLite goes on without an error, into a file that nobody will find again.
        """
        if self.identity is None:
            return True
        try:
            return _identity(self.path) == self.identity
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True  # it cannot be looked at, which does not say that it is gone

    def file_bytes(self) -> int:
        """Size of the database file."""
        return _size(self.path)

    def wal_bytes(self) -> int:
        """Size of the WAL file: the most that was in it since it was last emptied."""
        return _size(self.path + "-wal")


class Transaction:
    """See `Connection.transaction`."""

    __slots__ = ("_connection", "_translated")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._translated = translated(connection.path)

    def __enter__(self) -> None:
        with self._translated:
            self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self._connection.roll_back()
            self._translated.__exit__(kind, error, traceback)
            return
        with self._translated:
            try:
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.roll_back()
                raise


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _identity_opened(path: str) -> tuple[int, int]:
    try:
        return _identity(path)
    except OSError as error:
        raise StorageFailed(f"{path} went away while it was opened: {error.strerror}") from error


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def open_writer(
    path: str, *, synchronous: Literal["full", "normal"], application_id: int
) -> Connection:
    """The one read-write connection to a database, made (0600) where there is none.

    A file that is no database, or another program's, is refused with DatabaseDamaged and not
    touched. Raises Busy where a lock is in the way: try again. Also StorageFailed.
    """
    _make(path)
    with translated(path):
        connection = sqlite3.connect(  # noqa: TID251 - here, and nowhere else
            path, timeout=0, isolation_level=None, cached_statements=256, factory=Connection
        )
    connection.path = path
    try:
        with translated(path):
            _refuse_foreign(connection, application_id)
            _configure(connection, synchronous)
        connection.identity = _identity_opened(path)
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: str) -> Connection:
    """A connection that cannot write. Raises StorageFailed where there is no file, or an empty one:
    SQLite would remove the WAL beside that, and with it what may be all that is left."""
    if os.path.exists(path) and not _size(path):
        raise StorageFailed(f"{path} is empty")
    with translated(path):
        connection = sqlite3.connect(  # noqa: TID251 - here, and nowhere else
            f"file:{quote(path)}?mode=ro",
            uri=True,
            timeout=0,
            isolation_level=None,
            factory=Connection,
        )
        connection.path = path
        try:
            connection.execute("PRAGMA query_only=1")
            connection.execute("PRAGMA schema_version")
        except BaseException:
            connection.close()
            raise
    return connection


def has_fts5() -> bool:
    """Whether Python's SQLite was built with what text search needs."""
    connection = sqlite3.connect(":memory:")  # noqa: TID251 - here, and nowhere else
    try:
        options = {row[0] for row in connection.execute("PRAGMA compile_options")}
    finally:
        connection.close()
    return "ENABLE_FTS5" in options


def _make(path: str) -> None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if os.path.islink(path):
            raise UnsafePermissions(
                f"{path} is a symbolic link; put the file itself there, or name its directory"
            ) from error
        raise StorageFailed(f"{path} cannot be opened: {error.strerror}") from error
    try:
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != 0o600:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _refuse_foreign(connection: Connection, application_id: int) -> None:
    found = connection.execute("PRAGMA application_id").fetchone()[0]
    objects = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if objects and found != application_id:
        raise DatabaseDamaged(
            f"{connection.path} is a database of another program and was left as it is; move it "
            "away, or choose another data_directory"
        )


def _configure(connection: Connection, synchronous: Literal["full", "normal"]) -> None:
    connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
    mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode != "wal":
        raise StorageFailed(
            f"{connection.path} is on a file system where SQLite cannot keep a write-ahead log; "
            "choose a data_directory on a local disk"
        )
    connection.execute(f"PRAGMA synchronous={synchronous}")
    if synchronous == "full":
        # Without effect but on macOS, where fsync alone leaves data in the drive's cache.
        connection.execute("PRAGMA fullfsync=1")
        connection.execute("PRAGMA checkpoint_fullfsync=1")
    connection.execute(f"PRAGMA wal_autocheckpoint={AUTOCHECKPOINT_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit={WAL_KEEP_BYTES}")
    connection.execute(f"PRAGMA cache_size={-_CACHE_KIB}")
