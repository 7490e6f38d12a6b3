"""What can happen to the dedicated Redis beside its death: it is emptied, runs out of memory, loses
its socket, or another program's server sits where it was. SQLite has everything; a server that is
not ours is never written."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentbus.config import Settings
from agentbus.supervisor.redis_discovery import discover
from tests.support import audit, redis
from tests.support.daemon import BOUND, Daemon, wait
from tests.support.stdio import Adapter

pytestmark = pytest.mark.timeout(300)

STEP = 15


def socket_path(bus: Daemon) -> str:
    """Of the present server."""
    (name,) = [each for each in os.listdir(bus.paths.redis_directory) if each.endswith(".sock")]
    return os.path.join(bus.paths.redis_directory, name)


@contextmanager
def foreign(path: str, directory: Path) -> Iterator[list[object]]:
    """Another program's server with data of its own; at the end they must be as they were."""
    server = discover(Settings()).executable
    command = [server, "--port", "0", "--unixsocket", path, "--save", "", "--dir", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        assert wait(lambda: listens(path))
        with redis.connect(path) as sock:
            redis.ask(sock, (b"SET", b"theirs", b"precious"), (b"XADD", b"s", b"1-1", b"a", b"b"))
            redis.ask(sock, (b"CONFIG", b"RESETSTAT"))
            try:
                yield redis.ask(sock, (b"DBSIZE",))
                value, entries, size, stats = redis.ask(
                    sock,
                    (b"GET", b"theirs"),
                    (b"XRANGE", b"s", b"-", b"+"),
                    (b"DBSIZE",),
                    (b"INFO", b"commandstats"),
                )
            finally:
                process.kill()
    assert (value, entries, size) == (b"precious", [[b"1-1", [b"a", b"b"]]], 2)
    assert isinstance(stats, bytes)
    for written in (
        b"flushall",
        b"xadd",
        b"hset",
        b"exec",
        b"set",
        b"xtrim",
        b"save",
        b"config|set",
    ):
        assert b"cmdstat_" + written + b":" not in stats, stats.decode()


def listens(path: str) -> bool:
    try:
        redis.connect(path).close()
    except OSError:
        return False
    return True


def test_row_18_redis_emptied_from_outside_costs_nothing(bus: Daemon) -> None:
    with audit.audited(bus) as traffic:
        for _ in range(2):
            traffic.go_on(STEP)
            with redis.of_bus(bus.paths) as sock:
                redis.ask(sock, (b"FLUSHALL",))
            traffic.go_on(STEP)
        assert [traffic.reader.adapters, *(s.adapters for s in traffic.senders)] == [1] * 5


def test_row_18_restarts_replay_nothing_that_was_acknowledged(bus: Daemon) -> None:
    arguments = ("--application", "row", "--session", "18")
    with Adapter(bus.environment, *arguments) as reader, bus.peer() as peer:
        reader.call("whoami")
        sender = peer.attach("sender")
        for number in range(20):
            sender.send("general", f"m{number}", f"{number}")
        got = reader.call("recv", max_messages=10, wait_seconds=30)["messages"]
        assert [each["content"] for each in got] == [f"{number}" for number in range(10)]
        reader.call("whoami")
    bus.kill("redis")
    bus.kill("supervisor")
    with Adapter(bus.environment, *arguments) as reader:
        reader.call("whoami")  # which starts the daemon
        with redis.of_bus(bus.paths) as sock:
            redis.ask(sock, (b"FLUSHALL",))
        rest: list[str] = []
        while len(rest) < 10:
            rest += [m["content"] for m in reader.call("recv", wait_seconds=30)["messages"]]
        assert rest == [f"{number}" for number in range(10, 20)]
        assert reader.call("recv", wait_seconds=1)["messages"] == []


def test_a_redis_without_memory_refuses_no_message_for_good(bus: Daemon) -> None:
    """`maxmemory` is not ours to set; whoever sets it makes the server refuse to write."""
    with audit.audited(bus, senders=2) as traffic:
        traffic.go_on(STEP)
        with redis.of_bus(bus.paths) as sock:
            redis.ask(sock, (b"CONFIG", b"SET", b"maxmemory", b"1"))
        status = bus.wait_until(lambda status: status["state"] == "recovering")
        print("without memory:", status["reasons"])
        assert any("memory" in reason for reason in status["reasons"])
        began = time.monotonic()
        with redis.of_bus(bus.paths) as sock:
            redis.ask(sock, (b"CONFIG", b"SET", b"maxmemory", b"0"))
        bus.wait_until(lambda status: status["state"] == "ready")
        print(f"ready {time.monotonic() - began:.1f} s after memory was there again")
        traffic.go_on(STEP)


def test_a_redis_whose_socket_was_deleted_is_replaced(bus: Daemon) -> None:
    with audit.audited(bus) as traffic:
        traffic.go_on(STEP)
        old, path = bus.pid("redis"), socket_path(bus)
        began = time.monotonic()
        os.unlink(path)
        bus.wait_until(
            lambda status: (
                status["state"] == "ready"
                and any(
                    item["name"] == "redis" and item["pid"] != old for item in status["processes"]
                )
            )
        )
        print(f"ready with another server after {time.monotonic() - began:.1f} s")
        assert socket_path(bus) != path
        traffic.go_on(STEP)
    log = Path(bus.paths.log("supervisor")).read_text()
    assert f"action=killed name=redis child={old} why=unreachable" in log


def test_a_foreign_redis_at_our_socket_is_never_written(bus: Daemon, tmp_path: Path) -> None:
    with audit.audited(bus) as traffic:
        traffic.go_on(STEP)
        path = socket_path(bus)
        pids = [bus.pid("projector"), bus.pid("gateway")]
        os.kill(bus.pid("supervisor"), signal.SIGSTOP)  # or it would see that at once
        try:
            os.unlink(path)
            with foreign(path, tmp_path):
                for pid in pids:  # their successors connect to what is there
                    os.kill(pid, signal.SIGKILL)
                for pid in bus.supervisors():
                    os.kill(pid, signal.SIGCONT)
                bus.wait_until(lambda status: status["state"] == "ready")
                traffic.go_on(STEP)
        finally:
            for pid in bus.supervisors():
                os.kill(pid, signal.SIGCONT)
        assert bus.pid("redis")


def test_a_foreign_redis_that_is_connected_to_is_known_and_left(
    bus: Daemon, tmp_path: Path
) -> None:
    """Connections to ours break, and the next ones reach another program's server."""
    with audit.audited(bus) as traffic:
        traffic.go_on(STEP)
        path = socket_path(bus)
        supervisor = bus.pid("supervisor")
        with redis.connect(path) as ours:
            os.kill(supervisor, signal.SIGSTOP)
            try:
                os.unlink(path)
                with foreign(path, tmp_path):
                    redis.ask(ours, (b"CLIENT", b"KILL", b"TYPE", b"normal", b"SKIPME", b"yes"))
                    status = bus.wait_until(lambda status: status["state"] == "recovering")
                    print("connected to another's:", status["reasons"])
                    time.sleep(1.0)  # in which it could be written
                    os.kill(supervisor, signal.SIGCONT)
                    bus.wait_until(lambda status: status["state"] == "ready")
                    traffic.go_on(STEP)
            finally:
                os.kill(supervisor, signal.SIGCONT)


def test_a_foreign_redis_at_a_path_of_ours_before_the_start_is_left_alone(
    cold_bus: Daemon, tmp_path: Path
) -> None:
    os.makedirs(cold_bus.paths.redis_directory, 0o700)
    os.chmod(cold_bus.paths.runtime_directory, 0o700)
    path = os.path.join(cold_bus.paths.redis_directory, "redis-00000000.sock")
    with foreign(path, tmp_path):
        cold_bus.start()
        cold_bus.wait_until(lambda status: status["redis"]["healthy"])
        with cold_bus.peer() as peer:
            peer.attach("x").send("general", "m", "content")
    assert cold_bus.status()["state"] == "ready"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGSEGV, signal.SIGKILL])
def test_a_redis_that_ends_in_any_way_comes_back_with_everything(
    bus: Daemon, number: signal.Signals
) -> None:
    with audit.audited(bus) as traffic:
        for _ in range(2):
            traffic.go_on(STEP)
            old = bus.pid("redis")
            began = time.monotonic()
            os.kill(old, number)
            bus.wait_until(
                lambda status, old=old: (
                    status["state"] == "ready" and status["redis"]["pid"] not in (None, old)
                )
            )
            print(f"ready {time.monotonic() - began:.2f} s after {number.name}")
            traffic.go_on(STEP)


def test_a_redis_directory_that_was_removed_is_made_again(bus: Daemon) -> None:
    old = bus.pid("redis")
    shutil.rmtree(bus.paths.redis_directory)
    bus.wait_until(
        lambda status: status["state"] == "ready" and status["redis"]["pid"] not in (None, old)
    )
    with bus.peer() as peer:
        assert peer.attach("x").send("general", "m", "content")["seq"] == 1
    assert wait(lambda: bus.status()["redis"]["healthy"], BOUND)
