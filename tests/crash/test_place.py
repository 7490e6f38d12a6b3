"""Files that somebody removes, or puts there, under a running daemon: it stays reachable, it can be
stopped, and there is never a second one."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentbus.client import admin
from agentbus.config import Configuration, load
from agentbus.errors import NotRunning, Unavailable
from tests.support.daemon import BOUND, Daemon, wait
from tests.support.peers import Peer
from tests.support.stdio import Adapter

REACHED = 3.0
"""Seconds; it looks once a second."""


def command(bus: Daemon, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "agentbus", *arguments],
        env=bus.environment,
        capture_output=True,
        text=True,
        timeout=3 * BOUND,
        check=False,
    )


def configuration(bus: Daemon, monkeypatch: pytest.MonkeyPatch) -> Configuration:
    """As a command in the bus' own environment has it."""
    monkeypatch.setenv("AGENTBUS_RUNTIME_DIR", bus.environment["AGENTBUS_RUNTIME_DIR"])
    return load(bus.config_path)


def remove(bus: Daemon, what: str) -> None:
    if what == "socket":
        os.unlink(bus.paths.socket)
    else:
        shutil.rmtree(bus.paths.runtime_directory)


def is_reached(bus: Daemon) -> bool:
    """Whether a new connection is answered."""
    try:
        return bool(bus.status())
    except OSError:
        return False


@pytest.mark.parametrize("what", ["socket", "directory"])
def test_what_was_removed_is_there_again_and_nobody_is_disturbed(bus: Daemon, what: str) -> None:
    supervisor, gateway = bus.pid("supervisor"), bus.pid("gateway")
    with Adapter(bus.environment) as old, bus.peer() as peer:
        attached = peer.attach("before")
        old.call("whoami")
        began = time.monotonic()
        remove(bus, what)
        assert wait(lambda: is_reached(bus), REACHED)
        print(f"reachable after {time.monotonic() - began:.1f} s")
        with Adapter(bus.environment) as new:
            sent = new.call("send", channel="general", content="found it")
            (got,) = old.call("recv", wait_seconds=30)["messages"]
            assert got["message_id"] == sent["message_id"]
        attached.send("general", "m", "the old connection still works")
        assert (bus.pid("supervisor"), bus.pid("gateway")) == (supervisor, gateway)
    bus.kill("gateway")  # the next one accepts from the new socket
    bus.wait_until(lambda status: status["state"] == "ready" and bus.pid("gateway") != gateway)
    bus.stop()
    assert not os.path.exists(bus.paths.socket)


@pytest.mark.parametrize("what", ["socket", "directory"])
def test_it_can_be_stopped_at_once(bus: Daemon, what: str) -> None:
    remove(bus, what)
    stopped = command(bus, "stop")
    assert (stopped.returncode, stopped.stdout) == (0, "agentbus has stopped\n")
    assert bus.ended()


@pytest.mark.parametrize("what", ["socket", "directory"])
def test_status_does_not_say_that_nothing_runs(bus: Daemon, what: str) -> None:
    remove(bus, what)
    shown = command(bus, "status")
    assert shown.returncode in (0, 4)
    assert "not running" not in shown.stdout
    bus.wait_until(lambda status: status["state"] == "ready")  # where it can be stopped


def test_a_second_daemon_leaves_although_nothing_tells_of_the_first(bus: Daemon) -> None:
    first = bus.pid("supervisor")
    shutil.rmtree(bus.paths.runtime_directory)
    assert [bus.start() for _ in range(3)] == [first] * 3
    assert wait(lambda: bus.supervisors() == [first])


def test_a_daemon_with_other_data_is_not_fought(bus: Daemon) -> None:
    """The place has become another's; the one that lost it ends in order."""
    first = bus.pid("supervisor")
    os.kill(first, signal.SIGSTOP)
    shutil.rmtree(bus.paths.runtime_directory)
    with Daemon(runtime=bus.paths.runtime_directory) as other:
        second = other.start()
        os.kill(first, signal.SIGCONT)
        assert bus.exit_code(first) == 1
        assert other.pid("supervisor") == second
        log = Path(bus.paths.log("supervisor")).read_text()
        assert f"process {second} serves at {bus.paths.socket} now" in log


def test_a_hung_gateway_does_not_keep_a_stop_from_coming(bus: Daemon) -> None:
    """Nobody answers at the socket, so the daemon is told by a signal."""
    supervisor = bus.pid("supervisor")
    gateway = bus.pid("gateway")
    os.kill(supervisor, signal.SIGSTOP)  # or it would replace the gateway
    os.kill(gateway, signal.SIGSTOP)
    with subprocess.Popen(
        [sys.executable, "-m", "agentbus", "stop"],
        env=bus.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as stopping:
        assert wait(lambda: pending(supervisor, signal.SIGTERM), 4 * admin.UNREACHABLE_SECONDS)
        os.kill(supervisor, signal.SIGCONT)
        out, error = stopping.communicate(timeout=BOUND)
    assert (stopping.returncode, out, error) == (0, b"agentbus has stopped\n", b"")


def pending(pid: int, number: int) -> bool:
    """Whether a signal waits for a stopped process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (mask,) = [int(line.split()[1], 16) for line in lines if line.startswith("ShdPnd")]
    return bool(mask >> (number - 1) & 1)


def test_a_daemon_that_does_not_end_is_named_with_what_ends_it(
    bus: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = configuration(bus, monkeypatch)
    supervisor = bus.pid("supervisor")
    os.kill(supervisor, signal.SIGSTOP)
    try:
        with pytest.raises(Unavailable, match=f"kill -9 {supervisor}"):
            admin.stop(found, timeout=1.0)
    finally:
        os.kill(supervisor, signal.SIGCONT)


def test_a_foreign_listener_is_not_what_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    with Daemon() as place, socket.socket(socket.AF_UNIX) as foreign:
        os.mkdir(place.paths.runtime_directory, 0o700)
        foreign.bind(place.paths.socket)
        foreign.listen()
        stopped = command(place, "stop")
        assert (stopped.returncode, stopped.stdout) == (1, "")
        assert "another program listens at" in stopped.stderr
        with pytest.raises(Unavailable, match="another program listens"):
            admin.stop(configuration(place, monkeypatch))
        assert os.path.exists(place.paths.socket)
        place.start()  # under the lock the name is the daemon's
        assert place.status()["state"] == "ready"


def test_a_foreign_listener_in_place_of_a_running_daemons_is_replaced(bus: Daemon) -> None:
    os.unlink(bus.paths.socket)
    with socket.socket(socket.AF_UNIX) as foreign:
        foreign.bind(bus.paths.socket)
        foreign.listen()
        stopped = command(bus, "stop")
    assert (stopped.returncode, stopped.stdout) == (0, "agentbus has stopped\n")
    assert bus.ended()


def test_a_pid_that_is_no_daemon_is_never_signalled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is held by something that says another program's pid."""
    with Daemon() as place, subprocess.Popen(["sleep", "600"]) as innocent:
        os.mkdir(place.paths.runtime_directory, 0o700)
        holder = subprocess.Popen(
            ["flock", "-x", place.paths.lock, "sleep", "600"], start_new_session=True
        )
        try:
            assert wait(lambda: not place.ended())
            with open(place.paths.lock, "w") as lock:
                lock.write(f'{{"pid": {innocent.pid}, "socket": "{place.paths.socket}"}}')
            monkeypatch.setattr(admin, "UNREACHABLE_SECONDS", 0.2)
            with pytest.raises(Unavailable, match="has not ended in 1 s"):
                admin.stop(configuration(place, monkeypatch), timeout=1.0)
            assert innocent.poll() is None
        finally:
            os.killpg(holder.pid, signal.SIGKILL)
            holder.wait()
            innocent.kill()
        with pytest.raises(NotRunning):
            admin.stop(configuration(place, monkeypatch))


def test_a_stale_socket_is_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    with Daemon() as place:
        os.mkdir(place.paths.runtime_directory, 0o700)
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(place.paths.socket)
        with pytest.raises(NotRunning):
            admin.stop(configuration(place, monkeypatch))
        with pytest.raises(ConnectionRefusedError):
            Peer(place.paths.socket)
