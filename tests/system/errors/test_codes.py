"""Each code of the contract, said at least once by the real thing."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agentbus.client import admin
from agentbus.config import load
from agentbus.errors import BY_CODE, NotRunning
from tests.support.daemon import BOUND, Daemon, wait
from tests.support.peers import Attached, RefusedError
from tests.support.stdio import Adapter, ToolError
from tests.system.errors.conftest import Place, Stubborn, inject

SHOWN = {
    "invalid_argument": "test_what_the_caller_got_wrong",
    "not_found": "test_what_the_caller_got_wrong",
    "channel_kind_conflict": "test_what_the_caller_got_wrong",
    "operation_id_conflict": "test_an_id_used_for_something_else",
    "message_too_large": "test_what_the_caller_got_wrong",
    "inspection_rejected": "test_what_the_hook_says",
    "inspection_unavailable": "test_what_the_hook_says",
    "discovery_disabled": "test_a_directory_that_is_off",
    "rate_limited": "test_a_rate_used_up",
    "capacity_exhausted": "test_memories_that_fill_the_budget",
    "storage_error": "test_a_disk_without_room",
    "recovering": "test_redis_away_and_then_the_bus",
    "unavailable": "test_redis_away_and_then_the_bus",
    "session_already_connected": "test_a_session_that_another_holds",
    "stale_attachment": "test_an_attachment_that_was_released",
    "internal": "test_a_fault_of_our_own",
    "config_mismatch": "test_a_daemon_with_other_settings",
    "version_mismatch": "test_a_daemon_of_another_version",
    "config_invalid": "test_what_the_machine_lacks",
    "redis_missing": "test_what_the_machine_lacks",
    "redis_incompatible": "test_what_the_machine_lacks",
    "unsafe_permissions": "test_what_the_machine_lacks",
    "database_damaged": "test_a_file_that_is_no_database",
    "not_running": "test_no_daemon",
}


def test_every_code_has_its_test_here() -> None:
    assert set(SHOWN) == set(BY_CODE)
    assert [name for name in SHOWN.values() if not callable(globals().get(name))] == []


def refused(adapter: Adapter, tool: str, **arguments: Any) -> ToolError:
    """The error of a call, checked against what the tree of errors says of it."""
    with pytest.raises(ToolError) as refusal:
        adapter.call(tool, **arguments)
    return checked(refusal.value)


def checked(error: ToolError) -> ToolError:
    assert error.retryable == BY_CODE[error.code].retryable
    return error


@pytest.mark.parametrize(
    ("code", "tool", "arguments"),
    [
        ("invalid_argument", "recv", {"max_messages": 0}),
        ("not_found", "send", {"channel": "nowhere", "content": "x"}),
        ("channel_kind_conflict", "create_channel", {"name": "general", "kind": "memory"}),
        ("message_too_large", "send", {"channel": "general", "content": "x" * 70_000}),
    ],
)
def test_what_the_caller_got_wrong(
    bus: Daemon, code: str, tool: str, arguments: dict[str, Any]
) -> None:
    with Adapter(bus.environment) as adapter:
        assert refused(adapter, tool, **arguments).code == code


def test_an_id_used_for_something_else(bus: Daemon) -> None:
    with Adapter(bus.environment) as adapter:
        adapter.call("send", channel="general", content="one", message_id="the-id")
        error = refused(adapter, "send", channel="general", content="two", message_id="the-id")
    assert error.code == "operation_id_conflict"


@pytest.mark.parametrize(
    ("content", "code", "reason"),
    [("rude", "inspection_rejected", "not nice"), ("odd", "inspection_unavailable", None)],
)
def test_what_the_hook_says(bus: Daemon, content: str, code: str, reason: str | None) -> None:
    with Adapter(bus.environment) as adapter:
        arguments = {"channel": "general", "content": content}
        result = adapter.ask("tools/call", name="send", arguments=arguments)
    assert result["isError"]
    error = result["structuredContent"]["error"]
    assert (error["code"], error["retryable"]) == (code, BY_CODE[code].retryable)
    assert reason is None or error["reason"] == reason


def test_a_directory_that_is_off(place: Place) -> None:
    with Adapter(place(discovery_enabled=False).environment) as adapter:
        assert refused(adapter, "discover").code == "discovery_disabled"
        adapter.call("send", channel="general", content="who am I?")
        [message] = adapter.call("history", channel="general")["messages"]
        assert message["sender"] == adapter.call("whoami")["display_name"]


def test_a_rate_used_up(place: Place) -> None:
    bus = place(send_messages_per_second=1)
    with Adapter(bus.environment) as adapter:
        error = refused_in_the_end(adapter, "short")
    assert error.code == "rate_limited"
    assert 0 < error.retry_after_ms <= 1000


@pytest.mark.timeout(180)
def test_memories_that_fill_the_budget(place: Place) -> None:
    bus = place(
        redis_budget_mib=64,
        sqlite_budget_mib=64,
        max_message_kib=1024,
        send_messages_per_second=10_000,
        send_kib_per_second=65_536,
    )
    bus.start()
    with bus.peer() as peer, Adapter(bus.environment) as adapter:
        fill(peer.attach("filler"))
        error = refused(adapter, "send", channel="memory", content="x" * 900_000)
        assert error.code == "capacity_exhausted"
        assert bus.config_path in str(error)


def fill(sender: Attached) -> None:
    """Memories until one does not fit."""
    for number in range(200):
        try:
            sender.send("memory", f"memory-{number}", "x" * 1_000_000)
        except RefusedError as error:
            if error.code == "capacity_exhausted":
                return
            if error.code != "rate_limited":
                raise
    raise AssertionError("everything fitted")


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are Linux' alone")
def test_a_disk_without_room(place: Place) -> None:
    bus = place()
    with Adapter(bus.environment) as adapter:
        adapter.call("send", channel="general", content="fits")
        writer = bus.pid("writer")
        size = os.stat(bus.paths.database + "-wal").st_size
        before = resource.prlimit(writer, resource.RLIMIT_FSIZE)
        resource.prlimit(writer, resource.RLIMIT_FSIZE, (size, before[1]))
        error = refused_in_the_end(adapter, "x" * 60_000)
        resource.prlimit(writer, resource.RLIMIT_FSIZE, before)
        assert error.code == "storage_error"
        assert adapter.call("send", channel="general", content="fits again")["seq"]


def refused_in_the_end(adapter: Adapter, content: str) -> ToolError:
    """The first error that the same message meets when it is sent again and again."""
    for number in range(50):
        try:
            adapter.call("send", channel="general", content=f"{number} {content}")
        except ToolError as error:
            return checked(error)
    raise AssertionError("nothing was refused")


@pytest.mark.timeout(180)
def test_redis_away_and_then_the_bus(place: Place, stubborn: Stubborn) -> None:
    bus = place(redis_executable=stubborn.executable)
    with Adapter(bus.environment) as adapter:
        adapter.call("whoami")
        bus.wait_until(lambda status: status["state"] == "ready")
        stubborn.refuse()
        bus.kill("redis")
        bus.wait_until(lambda status: status["state"] == "recovering")
        # The adapter asks again for 30 s before it says so.
        error = refused(adapter, "send", channel="general", content="when it can be")
        assert error.code == "recovering"
        arguments = {"channel": "general", "content": "too late"}
        waiting = adapter.request("tools/call", name="send", arguments=arguments)
        adapter.call("whoami")
        bus.stop()
        with pytest.raises(ToolError) as refusal:
            adapter.structured(adapter.answer(waiting)["result"])
        assert checked(refusal.value).code == "unavailable"


@pytest.mark.timeout(180)
def test_a_session_that_another_holds(bus: Daemon) -> None:
    claim = ("--application", "tests", "--session", "claimed")
    with Adapter(bus.environment, *claim) as first, Adapter(bus.environment, *claim) as second:
        name = first.call("whoami")["display_name"]
        # The other one tries again for as long as an attachment may take to expire.
        assert refused(second, "whoami").code == "session_already_connected"
        assert first.call("whoami")["display_name"] == name


def test_an_attachment_that_was_released(bus: Daemon) -> None:
    with bus.peer() as peer:
        attached = peer.attach("released")
        attached.call("release")
        with pytest.raises(RefusedError) as refusal:
            attached.send("general", "late", "too late")
    assert refusal.value.code == "stale_attachment"
    assert refusal.value.data["retryable"]


FAULT = """
from agentbus.gateway import directory

def discover(self, *_):
    raise RuntimeError("on purpose")

for thing in vars(directory).values():
    if isinstance(thing, type) and "discover" in vars(thing):
        thing.discover = discover
"""


def test_a_fault_of_our_own(place: Place) -> None:
    bus = place()
    bus.environment = inject(bus, FAULT)
    bus.start()
    with bus.peer() as peer:
        attached = peer.attach("victim")
        with pytest.raises(RefusedError) as refusal:
            attached.call("discover")
        assert refusal.value.code == "internal"
        assert not refusal.value.data["retryable"]
        assert attached.call("channel.list")["channels"]
    assert "on purpose" in Path(bus.paths.log_directory, "gateway.log").read_text()


def test_a_daemon_with_other_settings(bus: Daemon) -> None:
    other = Path(bus.directory, "other.json")
    other.write_bytes(Path(bus.config_path).read_bytes().replace(b"{", b'{"log_level":"debug",', 1))
    with Adapter(bus.environment, "--config", str(other)) as adapter:
        error = refused(adapter, "whoami")
    assert error.code == "config_mismatch"


def test_a_daemon_of_another_version(bus: Daemon) -> None:
    newer = inject(bus, "from agentbus.wire import rpc\nrpc.PROTOCOL = 99\n")
    with Adapter(newer) as adapter:
        error = refused(adapter, "whoami")
    assert error.code == "version_mismatch"
    assert "agentbus stop" in str(error)


def started(bus: Daemon) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "agentbus", "daemon"]
    return subprocess.run(
        command, env=bus.environment, capture_output=True, text=True, timeout=BOUND, check=False
    )


def old_server(bus: Daemon) -> str:
    path = os.path.join(bus.directory, "redis")
    Path(path).write_text("#!/bin/sh\necho 'Redis server v=6.2.14 sha=0 malloc=libc bits=64'\n")
    os.chmod(path, 0o700)
    return path


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("config_invalid", "redis_budget_mib"),
        ("redis_missing", "no-such-server"),
        ("redis_incompatible", "6.2.14"),
        ("unsafe_permissions", "chmod 700"),
    ],
)
def test_what_the_machine_lacks(place: Place, code: str, named: str) -> None:
    settings: dict[str, Any] = {}
    if code == "redis_missing":
        settings = {"redis_executable": "no-such-server"}
    bus = place(**settings)
    if code == "config_invalid":
        Path(bus.config_path).write_text('{"redis_budget_mib": 1}')
    elif code == "redis_incompatible":
        text = Path(bus.config_path).read_text()
        extra = f'{{"redis_executable": "{old_server(bus)}",'
        Path(bus.config_path).write_text(text.replace("{", extra, 1))
    elif code == "unsafe_permissions":
        os.makedirs(bus.paths.data_directory, mode=0o755)
        os.chmod(bus.paths.data_directory, 0o755)
    done = started(bus)
    assert done.returncode == 1
    assert done.stderr.startswith(f"agentbus: {code}: ")
    assert done.stderr.count("\n") == 1
    assert named in done.stderr
    with Adapter(bus.environment) as adapter:
        error = refused(adapter, "whoami")
    assert error.code == code
    assert named in str(error)


def test_a_file_that_is_no_database(place: Place) -> None:
    bus = place()
    bus.start()
    bus.stop()
    for ending in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.unlink(bus.paths.database + ending)
    Path(bus.paths.database).write_bytes(b"no database " * 1000)
    done = started(bus)
    assert done.returncode == 1
    assert done.stderr.startswith("agentbus: database_damaged: ")
    with Adapter(bus.environment) as adapter:
        assert refused(adapter, "whoami").code == "database_damaged"
    assert wait(bus.ended)
    assert Path(bus.paths.database).read_bytes() == b"no database " * 1000


def test_no_daemon(place: Place) -> None:
    """No command shows this code by itself: `status` has exit code 3, `stop` is content."""
    bus = place()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTBUS_RUNTIME_DIR", bus.environment["AGENTBUS_RUNTIME_DIR"])
        with pytest.raises(NotRunning) as refusal:
            admin.status(load(bus.config_path))
    assert refusal.value.code == "not_running"
