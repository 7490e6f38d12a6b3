"""Opening, transactions, and what SQLite's errors mean."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agentbus import sqlite
from agentbus.errors import AgentbusError, DatabaseDamaged, StorageFailed, UnsafePermissions
from agentbus.sqlite import Busy, Connection


def open_writer(path: Path, synchronous: str = "full") -> Connection:
    return sqlite.open_writer(str(path), synchronous=synchronous, application_id=7)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a file's name?.db"


@pytest.fixture
def writer(path: Path) -> Iterator[Connection]:
    with closing(open_writer(path)) as connection:
        connection.execute("PRAGMA application_id = 7")
        connection.execute("CREATE TABLE t (x PRIMARY KEY)")
        yield connection


def values(connection: Connection) -> list[object]:
    return [row[0] for row in connection.execute("SELECT x FROM t ORDER BY x")]


def test_a_new_file_is_the_users_alone(path: Path) -> None:
    before = os.umask(0)
    try:
        with closing(open_writer(path)) as connection:
            connection.execute("CREATE TABLE t (x)")
            for name in path.parent.iterdir():
                assert stat.S_IMODE(name.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_file_that_others_could_read_is_closed_to_them(path: Path) -> None:
    path.touch(0o644)
    open_writer(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_symbolic_link_is_refused(path: Path) -> None:
    path.symlink_to(path.parent / "elsewhere")
    with pytest.raises(UnsafePermissions, match="symbolic link"):
        open_writer(path)


def test_a_directory_that_is_not_there_is_a_storage_failure(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed):
        open_writer(tmp_path / "no" / "bus.db")


def test_a_file_that_cannot_have_a_wal_is_refused() -> None:
    with (
        closing(sqlite3.connect(":memory:", factory=Connection)) as connection,
        pytest.raises(StorageFailed, match="local disk"),
    ):
        sqlite._configure(connection, "full")


@pytest.mark.parametrize(("synchronous", "value"), [("full", 2), ("normal", 1)])
def test_the_writer_is_set_up_as_configured(path: Path, synchronous: str, value: int) -> None:
    with closing(open_writer(path, synchronous)) as connection:

        def pragma(name: str) -> object:
            return connection.execute(f"PRAGMA {name}").fetchone()[0]

        assert pragma("journal_mode") == "wal"
        assert pragma("synchronous") == value
        assert pragma("fullfsync") == (synchronous == "full")
        assert pragma("busy_timeout") == 0
        assert pragma("wal_autocheckpoint") == sqlite.AUTOCHECKPOINT_PAGES
        assert connection.isolation_level is None


@pytest.mark.parametrize(
    "content", [b"this is no database" * 300, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_file_that_is_no_database_is_refused_and_not_touched(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(DatabaseDamaged, match="agentbus reset"):
        open_writer(path)
    assert path.read_bytes() == content
    assert [name.name for name in path.parent.iterdir()] == [path.name]


def test_another_programs_database_is_refused_and_not_touched(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE theirs (x)")
    content = path.read_bytes()
    with pytest.raises(DatabaseDamaged, match="another program"):
        open_writer(path)
    assert path.read_bytes() == content


def test_a_reader_sees_what_is_committed_and_cannot_write(writer: Connection, path: Path) -> None:
    with closing(sqlite.open_reader(str(path))) as reader:
        with writer.transaction():
            writer.execute("INSERT INTO t VALUES (1)")
            assert values(reader) == []
        assert values(reader) == [1]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.execute("INSERT INTO t VALUES (2)")


def test_a_reader_of_no_file_makes_none(path: Path) -> None:
    with pytest.raises(StorageFailed):
        sqlite.open_reader(str(path))
    assert not path.exists()


def test_a_reader_of_an_empty_file_leaves_the_wal_beside_it(path: Path) -> None:
    path.touch()
    wal = Path(f"{path}-wal")
    wal.write_bytes(b"may be all that is left")
    with pytest.raises(StorageFailed, match="is empty"):
        sqlite.open_reader(str(path))
    assert wal.read_bytes() == b"may be all that is left"


def test_a_snapshot_is_one_state(writer: Connection, path: Path) -> None:
    with closing(sqlite.open_reader(str(path))) as reader:
        with reader.snapshot():
            assert values(reader) == []
            writer.execute("INSERT INTO t VALUES (1)")
            assert values(reader) == []
        assert values(reader) == [1]
        assert not reader.in_transaction


def test_a_transaction_is_all_or_nothing(writer: Connection) -> None:
    with writer.transaction():
        writer.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(sqlite3.IntegrityError), writer.transaction():
        writer.executemany("INSERT INTO t VALUES (?)", [(2,), (1,)])
    assert not writer.in_transaction
    assert values(writer) == [1]


def test_a_locked_database_is_busy_at_once_and_usable_later(writer: Connection, path: Path) -> None:
    with closing(open_writer(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        entered = False
        with pytest.raises(Busy), writer.transaction():
            entered = True
        assert not entered
        other.execute("ROLLBACK")
    with writer.transaction():
        writer.execute("INSERT INTO t VALUES (1)")


class Faulty(Connection):
    """A connection whose commit fails, and whose rollback may fail as well."""

    commit_error: Exception | None = None
    rollback_error: Exception | None = None

    def execute(self, sql: str, *parameters: object) -> sqlite3.Cursor:  # type: ignore[override]
        if sql == "COMMIT" and self.commit_error is not None:
            raise self.commit_error
        cursor = super().execute(sql, *parameters)  # type: ignore[arg-type]
        if sql == "ROLLBACK" and self.rollback_error is not None:
            raise self.rollback_error
        return cursor


def test_a_failed_commit_rolls_back_and_the_first_error_survives(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None, factory=Faulty)
    connection.execute("CREATE TABLE t (x)")
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    connection.commit_error = full
    connection.rollback_error = sqlite3.OperationalError("rollback failed too")
    with pytest.raises(StorageFailed, match="disk is full") as caught, connection.transaction():
        connection.execute("INSERT INTO t VALUES (1)")
    assert caught.value.__cause__ is full
    connection.commit_error = connection.rollback_error = None
    with connection.transaction():
        pass
    assert values(connection) == []
    connection.close()


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        (sqlite3.SQLITE_BUSY, Busy),
        (sqlite3.SQLITE_BUSY_RECOVERY, Busy),
        (sqlite3.SQLITE_LOCKED, Busy),
        (sqlite3.SQLITE_FULL, StorageFailed),
        (sqlite3.SQLITE_READONLY, StorageFailed),
        (sqlite3.SQLITE_IOERR_FSYNC, StorageFailed),
        (sqlite3.SQLITE_CANTOPEN, StorageFailed),
        (sqlite3.SQLITE_CORRUPT, DatabaseDamaged),
        (sqlite3.SQLITE_CORRUPT_INDEX, DatabaseDamaged),
        (sqlite3.SQLITE_NOTADB, DatabaseDamaged),
    ],
)
def test_errors_of_sqlite_have_a_meaning(code: int, meaning: type[AgentbusError]) -> None:
    error = sqlite3.OperationalError("why")
    error.sqlite_errorcode = code
    with pytest.raises(meaning) as caught, sqlite.translated("/data/bus.db"):
        raise error
    assert type(caught.value) is meaning
    assert "/data/bus.db" in caught.value.message
    assert "why" in caught.value.message
    assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    "error", [sqlite3.ProgrammingError("closed"), sqlite3.IntegrityError("unique"), ValueError()]
)
def test_faults_of_the_program_stay_what_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, sqlite.translated("x"):
        raise error
    assert caught.value is error


def test_checkpoints_move_the_wal_as_far_as_readers_let_them(
    writer: Connection, path: Path
) -> None:
    writer.execute("INSERT INTO t VALUES (1)")
    assert writer.wal_bytes() > 0
    with closing(sqlite.open_reader(str(path))) as reader:
        with reader.snapshot():
            values(reader)
            writer.execute("INSERT INTO t VALUES (2)")
            assert not writer.checkpoint("passive")
            assert not writer.checkpoint("truncate")
        assert writer.checkpoint("passive")
        assert writer.wal_bytes() > 0
        assert writer.checkpoint("truncate")
    assert writer.wal_bytes() == 0
    assert writer.file_bytes() == path.stat().st_size


def test_sizes_of_files_that_are_not_there_are_zero(writer: Connection, path: Path) -> None:
    path.with_name(path.name + "-wal").unlink()
    assert writer.wal_bytes() == 0


def test_text_search_is_there_where_a_table_of_it_can_be_made():
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
        except sqlite3.OperationalError:
            assert not sqlite.has_fts5()
        else:
            assert sqlite.has_fts5()
