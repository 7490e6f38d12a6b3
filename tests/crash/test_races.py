"""Things that happen at once and are not meant to: starts, stops, resets, recoveries, and two
configurations. There is one daemon, and everybody is told the truth."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from agentbus.config import Settings
from agentbus.supervisor.redis_discovery import discover
from tests.support.daemon import BOUND, Daemon, wait
from tests.support.launches import Launches
from tests.support.peers import Peer, RefusedError
from tests.support.stdio import Adapter, ToolError

pytestmark = pytest.mark.timeout(300)

STARTS = 50
ADAPTERS = 20


class Started:
    """A daemon that was started in the foreground; it is the one, or reports the one and leaves."""

    def __init__(self, bus: Daemon) -> None:
        self._reading, writing = os.pipe()
        command = [sys.executable, "-m", "agentbus", "daemon", "--foreground"]
        command += ["--config", bus.config_path, "--report-fd", str(writing)]
        self.process = subprocess.Popen(
            command,
            env=bus.environment,
            pass_fds=(writing,),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        os.close(writing)

    def report(self) -> dict[str, Any]:
        with open(self._reading, "rb") as pipe:
            line = pipe.readline()
        document: dict[str, Any] = json.loads(line) if line else {}
        return document

    def error(self) -> str:
        """Once it has ended."""
        _, error = self.process.communicate(timeout=BOUND)
        return error.decode()


def test_fifty_starts_at_once_are_one_daemon(cold_bus: Daemon) -> None:
    began = time.monotonic()
    started = [Started(cold_bus) for _ in range(STARTS)]
    reports = [each.report() for each in started]
    print(f"{STARTS} starts told after {time.monotonic() - began:.1f} s")
    assert all(report.get("ready") for report in reports), reports
    (owner,) = {report["pid"] for report in reports}
    others = [each for each in started if each.process.pid != owner]
    assert len(others) == STARTS - 1
    assert [each.error() for each in others] == [""] * len(others)
    assert [each.process.returncode for each in others] == [0] * len(others)
    assert cold_bus.supervisors() == [owner]
    status = cold_bus.status()
    assert (status["state"], status["processes"][0]["pid"]) == ("ready", owner)
    assert [item["restarts"] for item in status["processes"]] == [0] * len(status["processes"])
    (last,) = [each for each in started if each.process.pid == owner]
    cold_bus.stop()
    last.error()
    with closing(sqlite3.connect(f"file:{cold_bus.paths.database}?mode=ro", uri=True)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("SELECT incarnation FROM meta").fetchone() == (1,)


def test_row_5_daemons_that_come_later_touch_nothing(bus: Daemon) -> None:
    with bus.peer() as peer:
        sender = peer.attach("row 5")
        sender.send("general", "m", "content")
        before = files(bus)
        later = [Started(bus) for _ in range(10)]
        (owner,) = {each.report()["pid"] for each in later}
        assert owner == bus.pid("supervisor")
        assert [each.error() for each in later] == [""] * len(later)
        assert files(bus) == before
        assert sender.send("general", "m", "content")["duplicate"] is True
    log = Path(bus.paths.log("supervisor")).read_text()
    assert log.count("action=daemon_starts") == 1


def files(bus: Daemon) -> dict[str, tuple[int, int]]:
    """Which files there are, and when those of the data were written last."""
    found = {}
    for directory in (bus.paths.runtime_directory, bus.paths.data_directory):
        for root, _, names in os.walk(directory):
            for name in names:
                if name.startswith(("search.", "indexer.")):
                    continue  # made in the background
                path = os.path.join(root, name)
                status = os.stat(path)
                changes = name.endswith(".log") or "sqlite3" in name  # the owner goes on working
                found[path] = (status.st_ino, 0 if changes else status.st_mtime_ns)
    return found


def test_row_10_what_a_dead_daemon_left_hinders_none_of_twenty(cold_bus: Daemon) -> None:
    """A socket nobody listens at, and locks that name a living process which is somebody else's.
    One daemon is launched, for all of them."""
    paths = cold_bus.paths
    os.makedirs(paths.redis_directory, 0o700)
    os.makedirs(paths.data_directory, 0o700)
    os.chmod(paths.runtime_directory, 0o700)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(paths.socket)
    with subprocess.Popen(["sleep", "600"]) as innocent, ExitStack() as stack:
        stale_owner = json.dumps(
            {
                "pid": innocent.pid,
                "socket": paths.socket,
                "runtime_directory": paths.runtime_directory,
            }
        )
        for path in (paths.lock, paths.data_lock, paths.redis_lock):
            Path(path).write_text(stale_owner)
        launches = Launches(cold_bus)
        began = time.monotonic()
        adapters = [
            stack.enter_context(Adapter(cold_bus.environment, greet=False)) for _ in range(ADAPTERS)
        ]
        up = time.monotonic()
        for adapter in adapters:
            adapter.greet()
        asked = [each.request("tools/call", name="whoami", arguments={}) for each in adapters]
        for adapter, number in zip(adapters, asked, strict=True):
            adapter.structured(adapter.answer(number)["result"])
        print(
            f"{ADAPTERS} adapters launched in {up - began:.1f} s, all answered after "
            f"{time.monotonic() - began:.1f} s; {processor_seconds(cold_bus, adapters):.1f} s of "
            "processors in all"
        )
        assert int(launches) == 1
        assert innocent.poll() is None
        innocent.kill()
        assert wait(lambda: cold_bus.supervisors() == [cold_bus.pid("supervisor")])


def processor_seconds(bus: Daemon, adapters: list[Adapter]) -> float:
    """What adapters and daemon have used so far."""
    pids = [adapter.pid for adapter in adapters]
    pids += [process["pid"] for process in bus.status()["processes"]]
    used = [psutil.Process(pid).cpu_times() for pid in pids]
    return sum(each.user + each.system for each in used)


# ---- starting and stopping


def test_a_start_during_a_stop_ends_with_one_daemon_that_serves(bus: Daemon) -> None:
    for _ in range(4):
        old = bus.pid("supervisor")
        with bus.peer() as peer:
            peer.call("stop")
            began = time.monotonic()
            new = bus.start()
        print(f"ready {time.monotonic() - began:.1f} s after its predecessor was told to stop")
        assert new != old
        assert wait(lambda new=new: bus.supervisors() == [new])
        assert bus.status()["state"] == "ready"


def test_a_stop_during_a_start_is_told_to_who_started(cold_bus: Daemon) -> None:
    """Whichever comes first: both hear the truth, and nothing is left half way."""
    for delay in (0.0, 0.3, 0.6, 0.9):
        starting = Started(cold_bus)
        time.sleep(delay)
        stopping = subprocess.run(
            [sys.executable, "-m", "agentbus", "stop"],
            env=cold_bus.environment,
            capture_output=True,
            text=True,
            timeout=3 * BOUND,
            check=False,
        )
        report = starting.report()
        assert (stopping.returncode, stopping.stderr) == (0, "")
        if stopping.stdout == "agentbus is not running\n":
            assert report["ready"]
            cold_bus.stop()
        elif not report.get("ready"):
            assert report["error"]["message"] == "the daemon was stopped before it was ready"
        assert starting.error() == ""
        assert starting.process.returncode == 0
        assert wait(cold_bus.ended)
        assert not os.path.exists(cold_bus.paths.socket)


def test_a_call_during_a_stop_is_answered_by_the_next_daemon(bus: Daemon) -> None:
    with Adapter(bus.environment) as adapter:
        for number in range(1, 4):
            adapter.call("whoami")
            with suppress(OSError, EOFError), bus.peer() as peer:
                peer.call("stop")  # may end before it is answered
            sent = insist(adapter, "send", channel="general", content=f"{number}")
            assert sent["seq"] == number


def insist(adapter: Adapter, tool: str, **arguments: Any) -> dict[str, Any]:
    """An agent that does what retryable errors say."""
    for _ in range(5):
        try:
            return adapter.call(tool, **arguments)
        except ToolError as error:
            if not error.retryable:
                raise
    raise AssertionError("five tries were not enough")


# ---- reset


def test_resets_in_the_middle_of_sends_leave_whole_buses(bus: Daemon) -> None:
    """What was accepted is on the bus that accepted it: all of it on the last one, from its first
    position on, and nothing of an earlier one."""
    ending = threading.Event()
    accepted: list[tuple[float, str, int]] = []
    failures: list[BaseException] = []

    def send(name: str) -> None:
        try:
            with Adapter(
                bus.environment, "--application", "race", "--session", name, "--agent", name
            ) as adapter:
                number = 0
                while not ending.is_set():
                    number += 1
                    content = f"{name}-{number}"
                    try:
                        began = time.monotonic()
                        sent = adapter.call("send", channel="general", content=content)
                        accepted.append((began, content, sent["seq"]))
                    except ToolError as error:
                        if not error.retryable:
                            raise
        except BaseException as error:  # noqa: BLE001 - the test's own thread tells it
            failures.append(error)

    threads = [threading.Thread(target=send, args=(f"s{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            count = len(accepted)
            assert wait(lambda count=count: len(accepted) > count + 20 or bool(failures))
            before = bus.status()["instance"]
            with bus.peer() as peer:
                peer.call("reset")
            bus.wait_until(
                lambda status, before=before: (
                    status["state"] == "ready" and status["instance"] not in ("", before)
                )
            )
            reset_at = time.monotonic()
        assert wait(lambda: sum(began > reset_at for began, *_ in accepted) > 20 or bool(failures))
    finally:
        ending.set()
        for thread in threads:
            thread.join(2 * BOUND)
    assert not failures, failures
    bus.stop()
    with closing(sqlite3.connect(f"file:{bus.paths.database}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT seq, envelope FROM messages ORDER BY seq").fetchall()
    stored = {json.loads(envelope)["content"]: seq for seq, envelope in rows}
    assert sorted(stored.values()) == list(range(1, len(rows) + 1))
    after = {content: seq for began, content, seq in accepted if began > reset_at}
    assert after.items() <= stored.items()
    assert stored.keys() <= {content for _, content, _ in accepted} | unanswered(stored, accepted)


def unanswered(stored: dict[str, int], accepted: list[tuple[float, str, int]]) -> set[str]:
    """What a sender was told nothing of, at most one message each: the one of its stop."""
    known = {content for _, content, _ in accepted}
    rest = {content for content in stored if content not in known}
    assert len(rest) <= 3
    return rest


# ---- recovery


def slow_server(directory: Path, seconds: float) -> str:
    """A Redis that takes its time before it listens."""
    script = directory / "redis"
    server = discover(Settings()).executable
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] || sleep {seconds}\nexec "{server}" "$@"\n')
    os.chmod(script, 0o700)
    return str(script)


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(RefusedError) as caught:
        call()
    return caught.value.code


def test_sessions_register_during_a_recovery_and_get_what_follows(tmp_path: Path) -> None:
    with Daemon(redis_executable=slow_server(tmp_path, 3)) as bus:
        bus.start()
        bus.wait_until(lambda status: status["state"] == "ready")
        with bus.peer() as peer:
            resumed = peer.attach("resumed")
            resumed.call("channel.create", name="recovery")
        bus.kill("redis")
        bus.wait_until(lambda status: status["state"] == "recovering")
        with ExitStack() as stack:
            began = time.monotonic()
            peers = [stack.enter_context(bus.peer()) for _ in range(6)]
            members = [peer.attach(f"new-{number}") for number, peer in enumerate(peers[1:])]
            back = peers[0].attach("resumed")
            for member in members:
                assert member.call("subscribe", channel="recovery")["created"]
            took = time.monotonic() - began
            print(f"6 registered in {took:.2f} s while the bus recovers")
            assert took < 2.0
            assert refusal(lambda: members[0].send("recovery", "m0", "0")) == "recovering"
            assert bus.status()["state"] == "recovering"
            bus.wait_until(lambda status: status["state"] == "ready")
            members[0].send("recovery", "m0", "0")
            members[0].send("general", "m1", "1")
            for member in members[1:]:
                assert {each["content"] for each in member.receive(2)} == {"0", "1"}
            assert [each["content"] for each in back.receive(1)] == ["1"]


# ---- two configurations


def changed(bus: Daemon, **settings: Any) -> str:
    """Another configuration file, which differs."""
    path = Path(bus.directory, "other.json")
    path.write_text(json.dumps({**json.loads(Path(bus.config_path).read_text()), **settings}))
    return str(path)


def test_an_adapter_with_other_settings_is_told_both_files_and_what_to_do(bus: Daemon) -> None:
    other = changed(bus, recv_default_count=7)
    supervisor = bus.pid("supervisor")
    with Adapter(bus.environment, "--config", other) as adapter:
        with pytest.raises(ToolError) as caught:
            adapter.call("whoami")
        text = str(caught.value)
        assert caught.value.code == "config_mismatch"
        assert not caught.value.retryable
        assert other in text
        assert bus.config_path in text
        assert "agentbus stop" in text
        for command in ("status", "stop"):
            done = subprocess.run(
                [sys.executable, "-m", "agentbus", command, "--config", other],
                env=bus.environment,
                capture_output=True,
                timeout=3 * BOUND,
                check=False,
            )
            assert (done.returncode, done.stderr) == (0, b"")
        assert adapter.call("whoami")  # the next call starts a daemon with these settings
        assert bus.pid("supervisor") != supervisor
        assert bus.status()["config_path"] == other


def test_two_daemons_for_one_data_directory_are_told_apart(bus: Daemon) -> None:
    """Other runtime directories, so they do not meet; the data directory has a lock of its own."""
    supervisor = bus.pid("supervisor")
    with Daemon(data_directory=bus.paths.data_directory) as other:
        with Adapter(other.environment) as adapter:
            with pytest.raises(ToolError) as caught:
                adapter.call("whoami")
            assert caught.value.code == "config_mismatch"
            text = str(caught.value)
            assert f"{bus.paths.data_directory} is in use by another daemon" in text
            assert f"process {supervisor} of {bus.paths.runtime_directory}" in text
            assert "set another data_directory" in text
        assert wait(other.ended)
    assert bus.status()["state"] == "ready"
    with Peer(bus.paths.socket) as peer:
        assert peer.attach("x").send("general", "m", "still one")["seq"] == 1


def test_daemons_with_two_configurations_started_at_once_are_one(cold_bus: Daemon) -> None:
    other = changed(cold_bus, recv_default_count=7)
    first = [Started(cold_bus) for _ in range(3)]
    own, cold_bus.config_path = cold_bus.config_path, other
    second = [Started(cold_bus) for _ in range(3)]
    cold_bus.config_path = own
    reports = [each.report() for each in (*first, *second)]
    (owner,) = {report["pid"] for report in reports}
    assert cold_bus.status()["config_path"] in (own, other)
    for each in (*first, *second):
        if each.process.pid != owner:
            assert each.error() == ""
    cold_bus.stop()
    for each in (*first, *second):
        if each.process.pid == owner:
            each.error()
