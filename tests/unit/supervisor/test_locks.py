from __future__ import annotations

import errno
import json
import os
import socket
import tempfile
import threading
from pathlib import Path

import pytest

from agentbus.client.start import READY_SECONDS
from agentbus.config import Settings
from agentbus.errors import ConfigMismatch, StorageFailed, Unavailable, UnsafePermissions
from agentbus.runtime import owners
from agentbus.runtime.owners import Owner
from agentbus.runtime.paths import locate, prepare
from agentbus.supervisor import locks


@pytest.fixture
def paths():
    with tempfile.TemporaryDirectory(prefix="ab-", dir="/tmp") as base:
        settings = Settings(data_directory=f"{base}/d")
        found = locate(settings, {"AGENTBUS_RUNTIME_DIR": f"{base}/r"})
        prepare(found)
        yield found


@pytest.fixture
def held(paths):
    """Both locks, as a daemon that is this process holds them."""
    taken = [locks.take(paths.lock), locks.take(paths.data_lock)]
    for lock in taken:
        assert lock is not None
        lock.write(Owner(os.getpid(), paths.socket, paths.runtime_directory))
    yield taken
    for lock in taken:
        lock.close()


@pytest.fixture
def daemon(paths):
    """Answers the first line of each connection with what is in `replies`."""
    replies = []
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(paths.socket)
    listener.listen()

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(10_000)
                connection.sendall(replies[0])

    thread = threading.Thread(target=serve)
    thread.start()
    yield replies
    listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    listener.close()


def result(state: str) -> bytes:
    hello = {"protocol": 1, "version": "1", "instance": "i", "state": state}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": hello}).encode() + b"\n"


def test_a_lock_is_taken_once(paths):
    lock = locks.take(paths.lock)
    assert lock is not None
    assert locks.take(paths.lock) is None
    lock.close()
    again = locks.take(paths.lock)
    assert again is not None
    again.close()


def test_a_copy_of_the_descriptor_keeps_it(paths):
    lock = locks.take(paths.lock)
    copy = os.dup(lock.fd)
    lock.close()
    assert locks.take(paths.lock) is None
    os.close(copy)
    locks.take(paths.lock).close()


def test_programs_do_not_inherit_it(paths):
    lock = locks.take(paths.lock)
    assert not os.get_inheritable(lock.fd)
    lock.close()


def test_who_holds_it_can_be_read(paths, held):
    assert owners.read(paths.lock) == Owner(os.getpid(), paths.socket, paths.runtime_directory)


def test_a_shorter_owner_leaves_nothing_of_a_longer_one(paths):
    lock = locks.take(paths.lock)
    lock.write(Owner(123456789, "/a/very/long/path"))
    lock.write(Owner(1, "/s"))
    assert owners.read(paths.lock) == Owner(1, "/s")
    lock.close()


def test_a_lock_file_without_sense_has_no_owner(paths):
    Path(paths.lock).write_text("{")
    assert owners.read(paths.lock) is None
    assert owners.read(paths.lock + ".none") is None


def test_a_link_in_its_place_is_refused(paths):
    os.symlink("/etc/hostname", paths.lock)
    with pytest.raises(UnsafePermissions):
        locks.take(paths.lock)


def test_a_file_that_was_removed_is_no_lock(paths, monkeypatch):
    """A cleaner took the file between opening and locking: the next one is locked instead."""
    real = locks.fcntl.flock
    removed = []

    def flock(fd, operation):
        real(fd, operation)
        if not removed:
            removed.append(os.unlink(paths.lock))

    monkeypatch.setattr(locks.fcntl, "flock", flock)
    lock = locks.take(paths.lock)
    assert os.path.samestat(os.fstat(lock.fd), os.stat(paths.lock))
    lock.close()


def test_a_daemon_that_answers_is_followed(paths, held, daemon):
    daemon.append(result("starting"))
    assert locks.take_daemon(paths) == owners.read(paths.lock)


def test_a_daemon_that_refuses_us_answers_too(paths, held, daemon):
    error = {"code": -32000, "message": "other version"}
    daemon.append(json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode() + b"\n")
    assert isinstance(locks.take_daemon(paths), Owner)


@pytest.mark.parametrize("reply", [result("stopping"), b"", b"nonsense\n"])
def test_a_daemon_that_stops_or_talks_nonsense_is_waited_for(
    paths, held, daemon, reply, monkeypatch
):
    daemon.append(reply)
    monkeypatch.setattr(locks, "OWNER_SECONDS", 0.2)
    with pytest.raises(Unavailable, match=str(os.getpid())):
        locks.take_daemon(paths)


def test_an_owner_that_is_gone_is_not_believed(paths, held, daemon, monkeypatch):
    daemon.append(result("ready"))
    held[0].write(Owner(2**22 + 1, paths.socket))
    monkeypatch.setattr(locks, "OWNER_SECONDS", 0.2)
    with pytest.raises(Unavailable):
        locks.take_daemon(paths)


def test_a_free_lock_is_taken(paths):
    lock = locks.take_daemon(paths)
    assert isinstance(lock, locks.Lock)
    lock.close()


def test_a_data_directory_in_use_names_who_uses_it(paths, held, daemon):
    daemon.append(result("ready"))
    held[1].write(Owner(os.getpid(), paths.socket, "/elsewhere"))
    with pytest.raises(ConfigMismatch, match=f"process {os.getpid()} of /elsewhere"):
        locks.take_data(paths)


def test_data_in_use_by_a_daemon_of_this_place_is_no_conflict(paths, held, daemon):
    daemon.append(result("ready"))
    assert locks.take_data(paths) == owners.read(paths.data_lock)


def test_a_daemon_gives_up_while_its_starter_still_listens():
    assert 35.0 < locks.OWNER_SECONDS <= READY_SECONDS - 10.0


def test_only_what_is_no_file_is_to_be_removed(paths):
    os.mkdir(paths.lock)
    with pytest.raises(UnsafePermissions, match="remove it"):
        locks.take(paths.lock)


@pytest.mark.parametrize(
    ("number", "kind", "text"),
    [
        (errno.EROFS, StorageFailed, "read-only"),
        (errno.ENOSPC, StorageFailed, "is full"),
        (errno.EACCES, UnsafePermissions, "Permission denied"),
    ],
)
def test_a_lock_that_cannot_be_opened_tells_why(paths, monkeypatch, number, kind, text):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(locks.os, "open", fail)
    with pytest.raises(kind, match=text) as caught:
        locks.take(paths.lock)
    assert "remove it" not in caught.value.message
