from __future__ import annotations

import os
import shutil
import signal
import socket

import pytest

from agentbus.runtime.platform import process_state

BOUND = 20.0


def test_a_killed_child_comes_back_with_fresh_links(bus, daemon):
    bus.event("received", "right")
    old = daemon.children()["left"].pid
    os.kill(old, signal.SIGKILL)
    events = []
    while not {"left", "right"} <= {e["name"] for e in events if e["kind"] == "received"}:
        events.append(bus.event_about_link())
        events = [event for event in events if event["pid"] != old]
    by_right = [event["kind"] for event in events if event["name"] == "right"]
    assert by_right == ["closed", "opened", "received"]
    heard = {event["name"]: event["text"] for event in events if event["kind"] == "received"}
    pids = {name: process.pid for name, process in daemon.children().items()}
    assert pids["left"] != old
    assert heard["right"] == f"hello from {pids['left']}"
    assert heard["left"] == f"hello from {pids['right']}"


def test_both_ends_killed_at_once_find_each_other_again(bus, daemon):
    bus.event("received", "right")
    children = daemon.children()
    for name in ("left", "right"):
        children[name].kill()
    old = {children["left"].pid, children["right"].pid}
    while True:
        said = bus.event("received")
        if said["pid"] not in old and int(said["text"].split()[-1]) not in old:
            break


def test_a_child_killed_again_and_again_is_given_up(bus, daemon):
    for number in range(1, 7):
        bus.logged("action=ready name=left", times=number)
        os.kill(bus.event("started", "left")["pid"], signal.SIGKILL)
    assert daemon.wait() == 1
    assert str(bus.data / "logs" / "left.log") in daemon.stderr()


def test_a_child_that_never_gets_ready_is_given_up_sooner(bus):
    daemon = bus.start(left="run_unready")
    error = daemon.report()["error"]
    assert error["code"] == "internal"
    assert "left keeps dying, the last time with exit code 3" in error["message"]
    assert daemon.wait() == 1
    assert bus.log().count("action=died name=left") == 3


def test_connections_wait_while_the_child_that_listens_is_replaced(bus, daemon):
    children = daemon.children()
    children["right"].suspend()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(BOUND)
        sock.connect(bus.socket)
        sock.sendall(b"nothing")
        children["right"].kill()
        assert sock.recv(1000).startswith(b'{"id": 1')


def test_a_stopped_child_is_replaced(bus, daemon):
    pid = bus.event("started", "left")["pid"]
    os.kill(pid, signal.SIGSTOP)
    assert bus.event("started", "left")["pid"] != pid
    assert "action=killed name=left" in bus.log()
    assert "why=stopped" in bus.log()


def test_a_stopped_redis_is_replaced(bus, daemon):
    bus.event("RedisUp", "left")
    daemon.children()["redis"].suspend()
    bus.event("RedisDown", "left")
    bus.event("RedisUp", "left")


def test_a_killed_redis_comes_back_at_another_socket(bus, daemon):
    first = bus.event("RedisUp", "left")["text"]
    daemon.children()["redis"].kill()
    bus.event("RedisDown", "left")
    second = bus.event("RedisUp", "left")["text"]
    assert second != first
    assert not os.path.exists(first)


def test_a_redis_whose_directories_were_removed_gets_others(bus, daemon):
    path = bus.event("RedisUp", "left")["text"]
    for directory in (bus.data / "redis", os.path.dirname(path)):
        shutil.rmtree(directory)
    daemon.children()["redis"].kill()
    assert answers(bus.event("RedisUp", "left")["text"])


def test_a_snapshot_being_written_does_not_hold_up_the_next_redis(bus, daemon):
    path = bus.event("RedisUp", "left")["text"]
    server = daemon.children()["redis"]
    redis(path, b"CONFIG SET rdb-key-save-delay 10000000", b"SET key value", b"BGSAVE")
    (writing,) = server.children()
    os.kill(server.pid, signal.SIGKILL)
    assert answers(bus.event("RedisUp", "left")["text"])
    assert process_state(writing.pid) == "gone"
    assert [name for name in os.listdir(bus.data / "redis") if name.startswith("temp")] == []


def test_a_redis_that_a_child_finds_unfit_is_replaced(bus, daemon):
    bus.event("RedisUp", "right")
    bus.command("unfit")
    bus.event("RedisDown", "right")
    bus.event("RedisUp", "right")
    assert "why=unfit" in bus.log()


def test_a_restarted_child_is_told_of_the_running_redis(bus, daemon):
    path = bus.event("RedisUp", "left")["text"]
    daemon.children()["left"].kill()
    assert bus.event("RedisUp", "left")["text"] == path


def test_the_list_of_processes_follows_every_change(bus, daemon):
    bus.event("RedisUp", "right")
    daemon.children()["left"].kill()
    bus.event("Processes", "right")


@pytest.mark.parametrize("snapshot", [b"REDIS9999 from the future", b"REDIS0009 cut"])
def test_a_snapshot_that_the_server_cannot_load_is_dropped(bus, snapshot):
    (bus.data / "redis").mkdir(parents=True, mode=0o700)
    bus.data.chmod(0o700)
    (bus.data / "redis" / "dump.rdb").write_bytes(snapshot)
    daemon = bus.start().ready()
    path = bus.event("RedisUp", "left")["text"]
    if not answers(path):
        path = bus.event("RedisUp", "left")["text"]
        assert answers(path)
    assert daemon.process.poll() is None
    assert "action=redis_snapshot_dropped" in bus.log()


def redis(path: str, *commands: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(BOUND)
        sock.connect(path)
        for command in commands:
            sock.sendall(command + b"\r\n")
            assert sock.recv(1000).startswith(b"+")


def answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(BOUND)
        try:
            sock.connect(path)
            sock.sendall(b"PING\r\n")
            return sock.recv(100) == b"+PONG\r\n"
        except OSError:
            return False


def test_sigkill_of_the_supervisor_leaves_no_process(bus, daemon, gone):
    children = list(daemon.children().values())
    assert len(children) == 3
    daemon.signal(signal.SIGKILL)
    daemon.wait()
    gone(children)


def test_a_daemon_starts_after_its_predecessor_was_killed(bus, daemon):
    daemon.signal(signal.SIGKILL)
    successor = bus.start().ready()
    assert set(successor.children()) == {"left", "right", "redis"}
