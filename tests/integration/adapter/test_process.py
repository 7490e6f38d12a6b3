"""The adapter as a process: what is written when, what breaks, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psutil
import pytest

from .conftest import COMMAND, Daemon, Harness

LARGE = "x" * (3 << 20)
"""More than any pipe holds."""

STORED = {"message_id": "m", "seq": 1, "sent_at": "t", "duplicate": False}


@pytest.fixture
def run(daemon: Daemon) -> Iterator[Callable[..., Harness]]:
    """Starts adapters that are not greeted."""
    started: list[Harness] = []

    def start(*arguments: Any) -> Harness:
        started.append(Harness(daemon, *arguments))
        return started[-1]

    yield start
    for each in started:
        each.close()


def contents(result: dict[str, Any]) -> list[str]:
    return [message["content"] for message in result["messages"]]


# delivery


def test_a_result_counts_as_delivered_with_its_last_byte(daemon, harness):
    daemon.deliver(LARGE)
    harness.call(1, "recv", max_kib=4096)
    assert daemon.is_silent()
    assert contents(harness.result(1)) == [LARGE]
    assert daemon.answer("delivered")["positions"] == [[1, 1]]


def test_a_result_that_is_half_written_when_stdout_breaks_is_no_delivery(daemon, harness):
    daemon.deliver(LARGE)
    harness.call(1, "recv", max_kib=4096)
    assert daemon.is_silent()
    harness.stdout.close()
    with pytest.raises(EOFError):
        daemon.expect("delivered")
    assert harness.ends(2) == 0


def test_what_waits_behind_a_half_written_result_can_still_be_cancelled(daemon, harness):
    daemon.deliver(LARGE, "second")
    harness.call(1, "recv", max_kib=4096, max_messages=1)
    assert daemon.is_silent()
    harness.call(2, "recv")
    harness.ask("notifications/cancelled", requestId=2)
    assert daemon.is_silent()
    assert contents(harness.result(1)) == [LARGE]
    assert daemon.answer("delivered")["positions"] == [[1, 1]]
    harness.call(3, "recv")
    assert contents(harness.result(3)) == ["second"]
    assert daemon.answer("delivered")["positions"] == [[1, 2]]


def test_a_result_whose_first_byte_is_out_is_delivered_although_it_is_cancelled(daemon, harness):
    daemon.deliver(LARGE)
    harness.call(1, "recv", max_kib=4096)
    assert daemon.is_silent()
    harness.ask("notifications/cancelled", requestId=1)
    assert contents(harness.result(1)) == [LARGE]
    assert daemon.answer("delivered")["positions"] == [[1, 1]]


def test_an_adapter_killed_after_a_result_has_reported_it(daemon, harness):
    daemon.deliver("one")
    harness.call(1, "recv")
    assert contents(harness.result(1)) == ["one"]
    harness.ask("ping", 2)
    harness.line()
    harness.signal(signal.SIGKILL)
    assert daemon.expect("delivered")["params"]["positions"] == [[1, 1]]


def test_an_adapter_killed_before_recv_has_reported_nothing(daemon, harness):
    daemon.deliver("one")
    harness.ask("ping", 1)
    harness.line()
    harness.signal(signal.SIGKILL)
    with pytest.raises(EOFError):
        daemon.expect("delivered")


# memories that change while they are written


def test_a_result_that_waits_behind_another_says_what_is_true_when_it_is_written(daemon, harness):
    daemon.deliver(LARGE)
    daemon.deliver("old", first=2, memory_id="k2")
    harness.call(1, "recv", max_kib=4096, max_messages=1)
    assert daemon.is_silent()
    harness.call(2, "recv")
    harness.ask("ping", "p")
    assert daemon.is_silent()
    daemon.revise(2, "new")
    assert daemon.is_silent()
    assert contents(harness.result(1)) == [LARGE]
    assert harness.line()["id"] == "p"
    assert contents(harness.result(2)) == ["new"]
    assert daemon.answer("delivered")["positions"] == [[1, 1]]
    assert daemon.answer("delivered")["positions"] == [[1, 2]]


def test_a_change_told_before_a_recv_was_asked_for_is_in_its_result(daemon, harness):
    """Its author may have asked for the recv, having the answer to the change in hand."""
    daemon.deliver("old", memory_id="k1")
    assert daemon.is_silent()
    harness.ask("ping", "p")
    assert harness.line()["id"] == "p"
    harness.signal(signal.SIGSTOP)
    harness.ask("ping", "q")
    daemon.revise(1, "new")
    harness.call(1, "recv")
    harness.signal(signal.SIGCONT)
    assert harness.line()["id"] == "q"
    assert contents(harness.result(1)) == ["new"]


def test_a_result_that_is_half_written_stays_as_it_is(daemon, harness):
    daemon.deliver(LARGE, memory_id="k1")
    harness.call(1, "recv", max_kib=4096)
    assert daemon.is_silent()
    daemon.revise(1, "new")
    assert daemon.is_silent()
    assert contents(harness.result(1)) == [LARGE]
    assert daemon.answer("delivered")["positions"] == [[1, 1]]
    harness.call(2, "recv")
    assert daemon.is_silent()
    assert harness.result(2)["messages"] == []


def test_a_notice_ends_a_wait(daemon, harness):
    harness.call(1, "recv", wait_seconds=30)
    daemon.note("notice", kind="capacity", channel="general", text="nearly full")
    assert harness.result(1)["notices"] == [
        {"kind": "capacity", "channel": "general", "text": "nearly full"}
    ]


# hooks, the resource, another bus


def test_a_hook_and_the_call_it_speaks_for_may_come_in_one_write(daemon, run):
    command = [*COMMAND[:4], "--application", "tests"]
    adapter = run(command)
    adapter.greet()
    daemon.greet()
    adapter.call("hook", "bind_caller", session_id="S", tool_use_id="t", agent_id="a")
    adapter.bound("call", "t", "whoami")
    released = daemon.answer("release")
    assert released["attachment"] == "1.1"
    daemon.attachment = "1.2"
    register = daemon.expect("register")
    assert (register["params"]["session"], register["params"]["child"]) == ("S", "a")
    assert adapter.result("hook") == {"bound": True}


def test_the_inbox_is_read_and_its_changes_are_told(daemon, harness):
    harness.ask("resources/subscribe", 1, uri="agentbus://inbox")
    assert harness.line()["id"] == 1
    daemon.note("inbox")
    assert harness.line()["method"] == "notifications/resources/updated"
    harness.ask("resources/read", 2, uri="agentbus://inbox")
    daemon.answer("inbox", channels=[{"channel": "general", "undelivered": 3}])
    (read,) = harness.line()["result"]["contents"]
    assert json.loads(read["text"])["undelivered"] == 3


def test_what_was_asked_of_a_bus_that_was_reset_ends_with_it(daemon, harness):
    daemon.deliver("old")
    harness.call(1, "send", channel="general", content="x")
    daemon.expect("send")
    daemon.hang_up()
    daemon.greet("another")
    error = harness.result(1)["error"]
    assert error["code"] == "unavailable"
    assert "reset" in error["message"]
    harness.call(2, "recv")
    assert daemon.is_silent()
    assert harness.result(2)["messages"] == []


# lines


def test_two_lines_in_one_write_and_one_line_in_many_are_both_read(daemon, harness):
    lines = b"".join(
        json.dumps({"jsonrpc": "2.0", "id": each, "method": "ping"}).encode() + b"\n"
        for each in (1, 2)
    )
    harness.stdin.write(lines)
    assert [harness.line()["id"] for _ in range(2)] == [1, 2]
    for byte in lines:
        harness.stdin.write(bytes([byte]))
    assert [harness.line()["id"] for _ in range(2)] == [1, 2]


def test_a_line_of_nine_mebibytes_is_answered_and_the_connection_goes_on(daemon, harness):
    harness.ask("tools/call", "big", name="send", arguments={"content": "x" * (9 << 20)})
    refused = harness.line()
    assert (refused["id"], refused["error"]["code"]) == ("big", -32600)
    harness.ask("ping", 2)
    assert harness.line()["id"] == 2


def test_many_calls_may_be_under_way(daemon, harness):
    for each in range(1, 41):
        harness.call(each, "send", channel="general", content=str(each))
    requests = [daemon.expect("send") for _ in range(40)]
    assert [each["params"]["content"] for each in requests] == [str(n) for n in range(1, 41)]
    for each in reversed(requests):
        daemon.write({"jsonrpc": "2.0", "id": each["id"], "result": STORED})
    assert [harness.line()["id"] for _ in range(40)] == list(range(40, 0, -1))


def test_a_recv_waits_while_other_calls_are_answered(daemon, harness):
    harness.call(1, "recv", wait_seconds=30)
    harness.ask("ping", 2)
    assert harness.line()["id"] == 2
    harness.call(3, "whoami")
    assert harness.result(3)["display_name"] == "Sam"
    daemon.deliver("one")
    assert contents(harness.result(1)) == ["one"]


# the daemon's side


def test_a_call_survives_the_daemons_connection_with_the_same_id(daemon, harness):
    harness.call(1, "send", channel="general", content="x")
    first = daemon.expect("send")["params"]["message_id"]
    daemon.hang_up()
    daemon.greet()
    assert daemon.answer("send", **STORED)["message_id"] == first
    assert harness.result(1) == STORED


def test_half_a_line_of_a_lost_daemon_is_forgotten(daemon, harness):
    harness.call(1, "send", channel="general", content="x")
    request = daemon.expect("send")
    assert daemon._connection is not None
    daemon._connection.sendall(b'{"jsonrpc":"2.0","id":%d,"resu' % request["id"])
    daemon.hang_up()
    daemon.greet()
    daemon.answer("send", **STORED)
    assert harness.result(1) == STORED


def test_reports_of_before_are_made_again_and_refills_of_them_dropped(daemon, harness):
    daemon.deliver("one", "two")
    harness.call(1, "recv", max_messages=1)
    assert contents(harness.result(1)) == ["one"]
    daemon.expect("delivered")
    daemon.hang_up()
    daemon.epoch = "2.0"
    daemon.greet()
    assert daemon.answer("delivered") == {
        "attachment": "1.1",
        "epoch": "2.0",
        "positions": [[1, 1]],
    }
    daemon.deliver("one", "two")
    harness.call(2, "recv")
    assert contents(harness.result(2)) == ["two"]


# the end


def test_it_ends_with_stdin_before_any_handshake(daemon, run):
    adapter = run()
    daemon.greet()
    adapter.stdin.close()
    assert adapter.ends(2) == 0


def test_it_ends_with_stdin_although_the_daemon_never_answers(daemon, run):
    adapter = run()
    adapter.greet()
    adapter.call(1, "recv", wait_seconds=60)
    adapter.call(2, "whoami")
    adapter.stdin.close()
    assert adapter.ends(2) == 0


def test_it_ends_with_stdin_in_the_middle_of_a_recv(daemon, harness):
    harness.call(1, "recv", wait_seconds=60)
    harness.stdin.close()
    assert harness.ends(2) == 0
    assert harness.result(1)["messages"] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_in_order_on_a_signal(daemon, harness, number):
    harness.call(1, "recv", wait_seconds=60)
    harness.ask("ping", 2)
    harness.line()
    harness.signal(number)
    assert harness.ends(1) == 0


def test_a_subscription_is_closed_in_order_at_the_end(daemon, harness):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    harness.ask("subscriptions/listen", "l", notifications={}, _meta=meta)
    assert harness.line()["method"] == "notifications/subscriptions/acknowledged"
    harness.signal(signal.SIGTERM)
    assert harness.line()["id"] == "l"


def test_it_ends_when_its_parent_is_killed_although_stdin_stays_open(daemon):
    theirs, ours = socket.socketpair()
    with theirs, ours:
        code = (
            "import subprocess, sys\n"
            "child = subprocess.Popen(sys.argv[1:])\n"
            "print(child.pid, file=sys.stderr, flush=True)\n"
            "child.wait()\n"
        )
        parent = subprocess.Popen(
            [sys.executable, "-c", code, *COMMAND],
            env=daemon.environment,
            cwd=daemon.directory,
            stdin=theirs,
            stdout=theirs,
            stderr=subprocess.PIPE,
        )
        assert parent.stderr is not None
        with parent, parent.stderr:
            adapter = psutil.Process(int(parent.stderr.readline()))
            daemon.greet()
            parent.kill()
            ended = psutil.wait_procs([adapter], timeout=2)[0]
            assert ended or adapter.status() == psutil.STATUS_ZOMBIE


def test_stdin_may_be_a_file(daemon):
    script = daemon.directory / "lines"
    script.write_text('{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
    with script.open("rb") as stdin:
        done = subprocess.run(
            COMMAND,
            env=daemon.environment,
            cwd=daemon.directory,
            stdin=stdin,
            capture_output=True,
            timeout=10,
            check=True,
        )
    assert json.loads(done.stdout)["id"] == 1
    assert done.stderr == b""


def test_stdout_blocks_again_for_whoever_shares_it(daemon):
    reader, writer = os.pipe()
    try:
        subprocess.run(
            COMMAND,
            env=daemon.environment,
            cwd=daemon.directory,
            stdin=subprocess.DEVNULL,
            stdout=writer,
            timeout=10,
            check=True,
        )
        assert os.get_blocking(writer)
    finally:
        os.close(reader)
        os.close(writer)


WHOAMI = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami"}}\n'


def with_faulty_settings(daemon, arguments, said, closing):
    """What an adapter with that fault writes: exit code, stdout, stderr."""
    for name, content in (("bad.json", '{"redis_budget_mib": 1}'), ("none.json", "")):
        (daemon.directory / name).write_text(content)
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closing}', "sh", *COMMAND, *arguments],
        env=daemon.environment,
        cwd=daemon.directory,
        input=said,
        capture_output=True,
        timeout=20,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr.decode()


@pytest.mark.parametrize("said", [b"", WHOAMI], ids=["silence", "a call"])
@pytest.mark.parametrize("file", ["bad.json", "none.json", "missing.json", "."])
def test_a_fault_of_the_settings_is_told_on_stderr_however_soon_stdin_ends(daemon, file, said):
    code, out, err = with_faulty_settings(daemon, ["--config", file], said, "")
    assert code == 1
    assert err.startswith(f"agentbus mcp: config_invalid: {daemon.directory / file}")
    assert err.count("\n") == 1
    assert out.count(b"config_invalid") == 2 * bool(said)  # as text and structured


@pytest.mark.parametrize("closing", ["2>&-", "2>/dev/full", "2>/dev/null"])
def test_a_stderr_that_takes_nothing_is_no_reason_to_fail(daemon, closing):
    code, out, _ = with_faulty_settings(daemon, ["--config", "bad.json"], WHOAMI, closing)
    assert code == 1
    assert out.count(b"\n") == 1
    assert b"config_invalid" in out


def test_a_stderr_that_nobody_reads_holds_up_nothing(daemon):
    reader, writer = os.pipe()
    try:
        os.set_blocking(writer, False)
        with suppress(BlockingIOError):
            while True:
                os.write(writer, b"x" * 65536)
        os.set_blocking(writer, True)
        done = subprocess.run(
            [*COMMAND, "--config", "missing.json"],
            env=daemon.environment,
            cwd=daemon.directory,
            input=WHOAMI,
            stdout=subprocess.PIPE,
            stderr=writer,
            timeout=20,
            check=False,
        )
        assert b"config_invalid" in done.stdout
    finally:
        os.close(reader)
        os.close(writer)


def test_it_imports_nothing_heavy(daemon):
    code = (
        "import sys\n"
        "import agentbus.adapter.main, agentbus.adapter.shell\n"
        "heavy = {'asyncio', 'redis', 'typer', 'rich', 'sqlite3', 'psutil', 'subprocess',\n"
        "         'hashlib', 'pathlib', 'json', 'logging', 'uvloop', 'ctypes'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
