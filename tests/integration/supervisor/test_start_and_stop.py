from __future__ import annotations

import os
import signal
import socket
import stat

import psutil
import pytest


def test_ready_is_reported_and_every_process_has_its_name(bus, daemon):
    assert set(daemon.children()) == {"left", "right", "redis"}
    assert psutil.Process(daemon.pid).cmdline()[0].startswith("agentbus: supervisor")


def test_children_greet_each_other_over_their_link(bus):
    daemon = bus.start().ready()
    said = {bus.event("received")["text"], bus.event("received")["text"]}
    children = daemon.children()
    assert said == {f"hello from {children[name].pid}" for name in ("left", "right")}


def test_redis_is_announced_once_it_listens(bus, daemon):
    path = bus.event("RedisUp", "left")["text"]
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)
        sock.sendall(b"PING\r\n")
        answer = sock.recv(100)
    assert answer == b"+PONG\r\n" or answer.startswith(b"-LOADING")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700


def test_sigterm_stops_the_last_service_first_and_redis_last(bus, daemon):
    children = daemon.children()
    daemon.signal(signal.SIGTERM)
    assert [bus.event("stop")["name"], bus.event("stop")["name"]] == ["right", "left"]
    assert daemon.wait() == 0
    assert not any(process.is_running() for process in children.values())
    assert not os.path.exists(bus.socket)


def test_only_the_service_that_saves_is_asked_for_a_snapshot(bus, daemon):
    bus.event("RedisUp", "left")
    daemon.signal(signal.SIGINT)
    assert bus.event("stop", "right")["text"] == "False"
    assert bus.event("stop", "left")["text"] == "True"
    assert daemon.wait() == 0


def test_a_child_can_ask_for_the_stop(bus, daemon):
    bus.command("stop")
    assert daemon.wait() == 0


def test_a_child_that_does_not_stop_is_killed_after_its_grace(bus):
    daemon = bus.start(left="run_deaf_to_stop").ready()
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    assert "action=killed name=left" in bus.log()


def test_connections_are_refused_while_the_rest_of_the_daemon_stops(bus):
    daemon = bus.start(left="run_deaf_to_stop").ready()
    daemon.signal(signal.SIGTERM)
    bus.logged("action=died name=right")
    with socket.socket(socket.AF_UNIX) as sock, pytest.raises(ConnectionRefusedError):
        sock.connect(bus.socket)
    assert daemon.wait() == 0


def test_a_failing_child_stops_the_daemon_with_its_error(bus, daemon):
    bus.command("fail")
    assert daemon.wait() == 1
    assert "database_damaged: a dummy's fault" in daemon.stderr()
    assert "code=database_damaged" in bus.log()


def test_an_error_while_starting_is_reported(bus):
    daemon = bus.start(left="run_damaged")
    error = daemon.report()["error"]
    assert error["code"] == "database_damaged"
    assert error["message"] == "the dummy's database is damaged; look at it"
    assert daemon.wait() == 1


def test_no_redis_is_reported_before_anything_is_forked(bus):
    bus.config.write_text('{"data_directory": "d", "redis_executable": "no-such-redis"}')
    daemon = bus.start()
    assert daemon.report()["error"]["code"] == "redis_missing"
    assert daemon.wait() == 1
    assert "action=started" not in bus.log()


def test_a_stale_socket_file_is_replaced(bus):
    bus.runtime.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(bus.socket)
    bus.start().ready()
    bus.command("nothing")


def test_files_and_directories_are_the_users_alone(bus, daemon):
    for directory in (bus.runtime, bus.data):
        for root, _, files in os.walk(directory):
            assert stat.S_IMODE(os.stat(root).st_mode) == 0o700
            for name in files:
                assert stat.S_IMODE(os.stat(os.path.join(root, name)).st_mode) & 0o077 == 0, name


def test_an_open_data_directory_is_refused(bus):
    bus.data.mkdir(mode=0o755)
    error = bus.start().report()["error"]
    assert error["code"] == "unsafe_permissions"
    assert f"chmod 700 {bus.data}" in error["message"]


def test_a_child_has_no_descriptor_that_is_not_its_own(bus, daemon):
    bus.event("RedisUp", "left")
    open_files = {
        name: [
            os.readlink(f"/proc/{process.pid}/fd/{fd}")
            for fd in os.listdir(f"/proc/{process.pid}/fd")
        ]
        for name, process in daemon.children().items()
    }
    # Standard error of the test is a pipe; so much is the test's doing.
    for name in ("left", "right"):
        sockets = [path for path in open_files[name] if path.startswith("socket:")]
        assert [path for path in open_files[name] if path.endswith("supervisor.log")] == []
        assert len([path for path in open_files[name] if path.endswith(".lock")]) == 2
        # control, link, uvloop's pair for signals; the listener
        assert len(sockets) == 4 + (name == "right"), open_files[name]
    assert [path for path in open_files["redis"] if path.endswith(".lock")] == [
        str(bus.runtime / "redis" / "redis.lock")
    ]


def test_a_daemon_that_is_stopped_before_it_is_ready_says_so(bus):
    daemon = bus.start(left="run_deaf")
    bus.event("started", "right")
    daemon.signal(signal.SIGTERM)
    error = daemon.report()["error"]
    assert (error["code"], error["message"]) == (
        "unavailable",
        "the daemon was stopped before it was ready",
    )
    assert daemon.wait() == 0
