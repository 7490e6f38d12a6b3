"""Directories, files, disks and databases that are not as they should be."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from agentbus.cli.doctor.gather import gather
from tests.support.daemon import Daemon
from tests.support.storage import Disk
from tests.system.bus.test_other_user import as_nobody
from tests.system.doctor.conftest import Doctor, Place, tree

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def used(place: Place) -> Daemon:
    """A bus that was used and stopped."""
    bus = place()
    bus.start()
    bus.stop()
    return bus


@pytest.fixture
def doctor(used: Daemon, home: Path) -> Doctor:
    """In a home in which all is well but the daemon, which does not run."""
    doctor = Doctor(used, home)
    doctor.connect()
    return doctor


def test_what_was_stopped_in_order_is_well_and_stays_to_the_last_byte(used, doctor, home):
    before = tree(used.directory, home)
    told = doctor()
    assert told.code == 0
    assert {each["check"] for each in told.document["checks"] if each["result"] != "ok"} == {
        "daemon"
    }
    assert tree(used.directory, home) == before


def test_a_directory_open_to_others(used, doctor):
    os.chmod(used.paths.data_directory, 0o755)
    assert f"\nchmod 700 {used.paths.data_directory}" in doctor().problem("directories")


def test_a_directory_that_is_a_link(used, doctor):
    os.rename(used.paths.runtime_directory, used.directory + "/elsewhere")
    os.symlink(used.directory + "/elsewhere", used.paths.runtime_directory)
    assert "symbolic link" in doctor().problem("directories")


def test_a_path_that_leads_through_a_file(place, home):
    bus = place()
    Path(bus.directory, "file").touch()
    doctor = Doctor(bus, home, AGENTBUS_RUNTIME_DIR=f"{bus.directory}/file/run")
    doctor.connect()
    assert "no directory" in doctor().problem("directories")


@ROOT
def test_a_directory_of_somebody_else(used, doctor):
    os.chown(used.paths.log_directory, 65534, 65534)
    assert "belongs to user id 65534" in doctor().problem("directories")


@ROOT
def test_directories_that_their_user_cannot_write(tmp_path):
    """Root can always, so this is somebody else's doctor, in a process of theirs."""
    home = tmp_path
    while home != Path("/tmp"):
        home.chmod(0o755)
        home = home.parent
    os.chown(tmp_path, 65534, 65534)
    environment = {"HOME": str(tmp_path), "PATH": "/nowhere"}

    def look() -> int:
        os.umask(0o077)
        os.makedirs(tmp_path / ".local/share/agentbus/logs")
        os.chmod(tmp_path / ".local/share/agentbus/logs", 0o500)
        os.chmod(tmp_path / ".local", 0o500)
        facts = gather(None, environment)
        errors = {each.role: str(each.error) for each in facts.directories if each.error}
        assert "chmod 700" in errors["logs"]
        assert "cannot be made" in errors["runtime"]
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path))
        patch.chdir(tmp_path)
        patch.delenv("AGENTBUS_CONFIG", raising=False)
        assert as_nobody(look) == 0


@ROOT
def test_a_file_that_sudo_has_left(used, doctor):
    log = used.paths.log("supervisor")
    os.chown(log, 65534, 65534)
    assert f"\nsudo chown 0 {log}" in doctor().problem("files")


def test_a_database_that_cannot_be_written_or_that_others_can_read(used, doctor):
    os.chmod(used.paths.database, 0o400)
    assert f"\nchmod u+rw {used.paths.database}" in doctor().problem("files")
    os.chmod(used.paths.database, 0o644)
    assert f"\nchmod go= {used.paths.database}" in doctor().warning("files")


def test_a_socket_path_that_is_too_long_is_elsewhere_and_said_so(place, home):
    bus = place()
    long = os.path.join(bus.directory, "x" * 120)
    doctor = Doctor(bus, home, AGENTBUS_RUNTIME_DIR=long)
    doctor.connect()
    assert "too long for a socket" in doctor().of("socket", "ok")


def test_a_disk_without_room_and_one_that_is_read_only(place, home):
    with Disk(16) as disk:
        bus = place(data_directory=disk.data)
        doctor = Doctor(bus, home)
        doctor.connect()
        disk.fill()
        full = doctor().problem("disk")
        assert "is full" in full
        assert f"df -h {disk.path}" in full
        disk.free()
        os.mkdir(disk.data, 0o700)
        subprocess.run(["mount", "-o", "remount,ro", disk.path], check=True)
        assert "read-only" in doctor().of("directories", "problem")


def test_a_disk_with_little_room(place, home):
    with Disk(256) as disk:
        doctor = Doctor(place(data_directory=disk.data), home)
        doctor.connect()
        assert "little room" in doctor().warning("disk")


def spoil(bus: Daemon, how: str) -> None:
    for ending in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.unlink(bus.paths.database + ending)
    if how == "gone":
        os.unlink(bus.paths.database)
    elif how == "emptied":
        os.truncate(bus.paths.database, 0)
    elif how == "cut off":
        os.truncate(bus.paths.database, 8192)
    elif how == "overwritten":
        Path(bus.paths.database).write_bytes(b"no database " * 1000)
    else:
        change = {"newer": "user_version = 99", "foreign": "application_id = 7"}
        database = sqlite3.connect(bus.paths.database)  # as another program would
        database.execute(f"PRAGMA {change.get(how, 'journal_mode = DELETE')}")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()


@pytest.mark.parametrize(
    ("how", "found", "do"),
    [
        ("gone", "a bus", "backup"),
        ("emptied", "a bus", "agentbus reset"),
        ("cut off", "cut off", "backup"),
        ("overwritten", "no SQLite database", "backup"),
        ("newer", "newer agentbus (schema 99", "update agentbus"),
        ("foreign", "another program", "data_directory"),
    ],
)
def test_a_database_that_cannot_be_used(used, doctor, how, found, do):
    spoil(used, how)
    told = doctor().problem("database")
    assert found in told
    assert do in told


def test_a_database_whose_journal_was_changed(used, doctor):
    spoil(used, "journal")
    assert "journal" in doctor().warning("database")


def test_a_clock_that_was_set_back_since(used, doctor):
    ahead = os.stat(used.paths.database).st_mtime + 7200
    os.utime(used.paths.database, (ahead, ahead))
    assert "2 h from now" in doctor().warning("clock")
