from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from agentbus.config import Settings
from agentbus.runtime.owners import Owner
from agentbus.runtime.paths import locate, prepare
from agentbus.supervisor import locks
from agentbus.supervisor.place import mark
from agentbus.supervisor.redis_discovery import Server
from agentbus.supervisor.redis_process import Held, RedisProcess


class Tokens:
    def token(self) -> str:
        return "0123456789abcdef" * 2


@pytest.fixture
def paths():
    with tempfile.TemporaryDirectory(prefix="ab-", dir="/tmp") as base:
        settings = Settings(data_directory=f"{base}/d")
        found = locate(settings, {"AGENTBUS_RUNTIME_DIR": f"{base}/r"})
        prepare(found)
        yield found


@pytest.fixture
def redis(paths, monkeypatch):
    process = RedisProcess(Server("/bin/redis-server", "redis", "7.0.0"), paths, Tokens())
    monkeypatch.setattr(process, "_spawn", lambda lock, path: 4711)
    return process


def test_it_has_no_port_and_writes_nothing_of_itself(redis, paths):
    arguments = redis.arguments("/r/s.sock")
    options = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    assert arguments[0] == "/bin/redis-server"
    assert options["--port"] == "0"
    assert options["--unixsocket"] == "/r/s.sock"
    assert options["--unixsocketperm"] == "700"
    assert options["--save"] == ""
    assert options["--appendonly"] == "no"
    assert options["--maxmemory-policy"] == "noeviction"
    assert options["--dir"] == paths.snapshot_directory
    assert options["--daemonize"] == "no"


def test_a_server_that_does_not_listen_has_no_file(redis, paths):
    path = f"{paths.redis_directory}/s"
    assert redis.listening(path) is None
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        assert redis.listening(path) is None
        server.listen()
        assert redis.listening(path) == mark(path)


def test_a_server_that_begins_to_listen_while_it_is_looked_at_is_known_by_its_own_file(
    redis, paths, monkeypatch
):
    """Otherwise it would be taken for one whose socket somebody has removed, and be killed."""
    path = f"{paths.redis_directory}/s"
    with socket.socket(socket.AF_UNIX) as server:

        class Late(socket.socket):
            def connect(self, address):
                server.bind(path)
                server.listen()
                super().connect(address)

        monkeypatch.setattr(socket, "socket", Late)
        found = redis.listening(path)
        assert found is not None
        assert found == mark(path)


def test_the_socket_is_named_after_the_incarnation(redis, paths):
    assert redis.start(keep_snapshot=True) == (4711, f"{paths.redis_directory}/redis-01234567.sock")


def test_what_servers_before_left_is_removed_but_not_the_snapshot(redis, paths):
    sockets, snapshots = Path(paths.redis_directory), Path(paths.snapshot_directory)
    for leftover in (sockets / "redis-old.sock", snapshots / "temp-77.rdb"):
        leftover.write_text("")
    (snapshots / "dump.rdb").write_text("")
    redis.start(keep_snapshot=True)
    assert os.listdir(sockets) == ["redis.lock"]
    assert os.listdir(snapshots) == ["dump.rdb"]


def test_a_snapshot_not_to_be_kept_is_removed(redis, paths):
    (Path(paths.snapshot_directory) / "dump.rdb").write_text("")
    redis.start(keep_snapshot=False)
    assert os.listdir(paths.snapshot_directory) == []


def test_the_supervisor_keeps_no_copy_of_the_lock(redis, paths):
    redis.start(keep_snapshot=True)
    locks.take(paths.redis_lock).close()


def test_a_held_lock_is_no_start(redis, paths):
    (Path(paths.redis_directory) / "redis-old.sock").write_text("")
    lock = locks.take(paths.redis_lock)
    lock.write(Owner(2**22 + 1, "/r/redis-old.sock"))
    with pytest.raises(Held) as caught:
        redis.start(keep_snapshot=True)
    assert caught.value.pid == 2**22 + 1
    assert "redis-old.sock" in os.listdir(paths.redis_directory)
    lock.close()


def test_a_lock_of_nobody_known_is_waited_for(redis, paths):
    lock = locks.take(paths.redis_lock)
    with pytest.raises(Held) as caught:
        redis.start(keep_snapshot=True)
    assert caught.value.pid == 0
    lock.close()
