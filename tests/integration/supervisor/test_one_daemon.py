from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import psutil

from agentbus.supervisor.redis_discovery import candidates

BOUND = 20.0


def test_a_second_daemon_reports_the_first_and_leaves(bus, daemon):
    second = bus.start()
    assert second.report() == {"ready": True, "pid": daemon.pid}
    assert second.wait() == 0
    assert daemon.process.poll() is None


def test_daemons_started_at_once_converge_on_one(bus):
    daemons = [bus.start() for _ in range(8)]
    owners = {daemon.report()["pid"] for daemon in daemons}
    assert len(owners) == 1
    (owner,) = owners
    codes = [daemon.wait() for daemon in daemons if daemon.pid != owner]
    assert codes == [0] * 7


def test_a_daemon_started_while_the_owner_stops_takes_over(bus):
    owner = bus.start(left="run_deaf_to_stop").ready()
    owner.signal(signal.SIGTERM)
    bus.event("stop", "right")
    bus.start().ready()
    assert owner.wait() == 0


def test_one_data_directory_serves_one_daemon(bus, daemon):
    other = bus.start(AGENTBUS_RUNTIME_DIR=str(bus.base / "other"))
    error = other.report()["error"]
    assert error["code"] == "config_mismatch"
    assert str(bus.data) in error["message"]
    assert str(daemon.pid) in error["message"]
    assert other.wait() == 1


def test_the_lock_says_who_and_where(bus, daemon):
    written = json.loads((bus.runtime / "daemon.lock").read_text())
    assert written["pid"] == daemon.pid
    assert written["socket"] == bus.socket


def test_a_long_runtime_directory_has_its_sockets_elsewhere(bus):
    runtime = bus.base / ("long" * 30)
    daemon = bus.start(AGENTBUS_RUNTIME_DIR=str(runtime)).ready()
    written = json.loads((runtime / "daemon.lock").read_text())
    assert written["socket"].startswith(f"/tmp/agentbus-{os.getuid()}/")
    assert os.path.exists(written["socket"])
    path = bus.event("RedisUp", "left")["text"]
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    assert not os.path.exists(written["socket"])
    shutil.rmtree(os.path.dirname(path))


def test_a_redis_left_by_a_killed_supervisor_is_ended(bus, gone):
    """As on systems where the kernel does not end it: a server that holds the lock, started by
    nobody who lives."""
    directory = bus.runtime / "redis"
    directory.mkdir(parents=True, mode=0o700)
    bus.runtime.chmod(0o700)
    path = directory / "redis-0000.sock"
    orphan = start_orphan(str(directory / "redis.lock"), str(path))
    try:
        bus.start().ready()
        bus.event("RedisUp", "left")
        gone([orphan])
        assert not path.exists()
        assert "action=redis_orphan_killed" in bus.log()
    finally:
        if orphan.is_running():
            orphan.kill()


def test_a_process_that_is_no_redis_of_ours_is_left_alone(bus):
    """The pid in the lock file has been given to somebody else."""
    directory = bus.runtime / "redis"
    directory.mkdir(parents=True, mode=0o700)
    bus.runtime.chmod(0o700)
    lock = {"pid": os.getpid(), "socket": str(directory / "redis-0000.sock")}
    (directory / "redis.lock").write_text(json.dumps(lock))
    bus.start().ready()
    bus.event("RedisUp", "left")


def start_orphan(lock: str, path: str) -> psutil.Process:
    """A server that has the lock and is in nobody's care."""
    program = """
import fcntl, json, os, subprocess, sys
lock, path, executable = sys.argv[1:]
fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(fd, fcntl.LOCK_EX)
server = subprocess.Popen(
    [executable, "--port", "0", "--unixsocket", path, "--save", ""],
    pass_fds=[fd], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
os.write(fd, json.dumps({"pid": server.pid, "socket": path}).encode())
print(server.pid)
"""
    executable = next(iter(candidates()))
    done = subprocess.run(
        [sys.executable, "-c", program, lock, path, executable],
        capture_output=True,
        check=True,
        timeout=BOUND,
    )
    until = time.monotonic() + BOUND
    while not os.path.exists(path) and time.monotonic() < until:
        os.sched_yield()
    return psutil.Process(int(done.stdout))
