"""Destroying a bus, with and without a daemon."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import BOUND, Daemon, wait
from tests.support.peers import RefusedError

RESET = [sys.executable, "-m", "agentbus", "reset"]


@pytest.fixture
def bus() -> Iterator[Daemon]:
    with Daemon() as daemon:
        yield daemon


def reset(bus: Daemon, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RESET, *arguments],
        env=bus.environment,
        input=typed,
        capture_output=True,
        text=True,
        timeout=BOUND * 2,
        check=False,
    )


def filled(bus: Daemon) -> str:
    """A bus with a message; its instance."""
    bus.start()
    ready = bus.wait_until(lambda status: status["state"] == "ready")
    with bus.peer() as peer:
        held = peer.call("register", application="test", session="s1", agent="Sam")
        sent = {"attachment": held["attachment"], "channel": "general", "message_id": "m1"}
        peer.call("send", **sent, content="to be forgotten")
    instance: str = ready["instance"]
    return instance


def test_a_running_bus_is_another_one_afterwards_and_empty(bus):
    before = filled(bus)
    supervisor = bus.pid("supervisor")
    done = reset(bus, "--yes")
    assert (done.returncode, done.stdout) == (0, "the bus is empty\n"), done.stderr
    status = bus.wait_until(lambda status: status["state"] == "ready")
    assert status["instance"] != before
    assert status["totals"]["messages"] == 0
    assert status["sessions"] == []
    assert {channel["name"] for channel in status["channels"]} == {"general", "memory"}
    assert bus.pid("supervisor") == supervisor


def test_nothing_of_the_old_bus_is_left_in_any_file_or_in_redis(bus):
    filled(bus)
    reset(bus, "--yes")
    bus.wait_until(lambda status: status["state"] == "ready")
    with bus.peer() as peer:
        held = peer.call("register", application="test", session="s2", agent="Sam")
        found = peer.call("history", attachment=held["attachment"], channel="general")
    assert found["messages"] == []
    bus.stop()
    for file in Path(bus.paths.data_directory).rglob("*"):
        if file.is_file():
            assert b"to be forgotten" not in file.read_bytes(), file


def test_an_attachment_of_the_old_bus_cannot_act_on_the_new_one(bus):
    bus.start()
    bus.wait_until(lambda status: status["state"] == "ready")
    with bus.peer() as peer:
        old = peer.call("register", application="test", session="s1")["attachment"]
    reset(bus, "--yes")
    bus.wait_until(lambda status: status["state"] == "ready")
    with bus.peer() as peer, pytest.raises(RefusedError) as refused:
        peer.call("send", attachment=old, channel="general", message_id="m1", content="late")
    assert refused.value.code == "stale_attachment"


def test_it_works_where_no_daemon_runs(bus):
    before = filled(bus)
    bus.stop()
    assert reset(bus, "--yes").returncode == 0
    assert not os.path.exists(bus.paths.database)
    bus.start()
    assert bus.wait_until(lambda status: status["state"] == "ready")["instance"] != before


def test_a_damaged_database_is_replaced(bus):
    filled(bus)
    bus.stop()
    Path(bus.paths.database).write_bytes(b"not a database" * 1000)
    assert reset(bus, "--yes").returncode == 0
    bus.start()
    bus.wait_until(lambda status: status["state"] == "ready")


@pytest.mark.timeout(180)
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("at", ["asked", "wiped"])
def test_a_daemon_that_is_killed_over_it_is_reset_all_the_same(bus, at, again):
    """`again`: somebody starts another one at once, which may have the old data still."""
    before = filled(bus)
    supervisor = bus.pid("supervisor")
    inode = os.stat(bus.paths.database).st_ino
    log = Path(bus.paths.log_directory, "supervisor.log")
    with subprocess.Popen([*RESET, "--yes"], env=bus.environment, stdout=subprocess.PIPE) as asking:
        if at == "asked":
            assert wait(lambda: "reset_asked" in log.read_text())
        else:
            assert wait(lambda: not is_file(bus.paths.database, inode))
        os.kill(supervisor, signal.SIGKILL)
        if again:
            bus.start()
        began = time.monotonic()
        said = asking.communicate(timeout=BOUND * 3)[0]
    print(f"measured: {time.monotonic() - began:.1f} s")
    assert (asking.returncode, said) == (0, b"the bus is empty\n")
    if not bus.ended():
        bus.stop()
    bus.start()
    status = bus.wait_until(lambda status: status["state"] == "ready")
    assert status["instance"] != before
    assert status["totals"]["messages"] == 0


def is_file(path: str, inode: int) -> bool:
    """Whether the same file is there still."""
    try:
        return os.stat(path).st_ino == inode
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("typed", ["", "yes\n", "RESET\n"])
def test_nothing_happens_unless_the_word_is_typed(bus, typed):
    filled(bus)
    bus.stop()
    done = reset(bus, typed=typed)
    assert done.returncode == 1
    assert "nothing was reset" in done.stderr
    assert os.path.exists(bus.paths.database)


def test_the_word_typed_is_enough(bus):
    filled(bus)
    bus.stop()
    assert reset(bus, typed="reset\n").returncode == 0
    assert not os.path.exists(bus.paths.database)


def test_configuration_and_logs_stay(bus):
    filled(bus)
    reset(bus, "--yes")
    assert os.path.exists(bus.config_path)
    assert os.listdir(bus.paths.log_directory)
