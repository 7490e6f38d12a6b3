"""Harnesses that end, break, stop reading or give up at the worst moment: no message is lost, none
counts as delivered that was not, and no adapter stays behind."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
import psutil
import pytest

from tests.support.daemon import Daemon, wait
from tests.support.stdio import Adapter
from tests.system.clients.conftest import MIB, resident

ENDS = 2.0
"""Seconds after which an adapter must be gone (row 9)."""

ENDS_AT_MOST = ENDS + 3.0
"""The same on a machine that is busy with other tests."""


def arguments(session: str) -> tuple[str, ...]:
    return ("--application", "clients", "--session", session, "--agent", session)


def line(method: str, identifier: Any = None, **params: Any) -> bytes:
    document = {"jsonrpc": "2.0", "method": method, "params": params}
    if identifier is not None:
        document["id"] = identifier
    return msgspec.json.encode(document) + b"\n"


def call(identifier: Any, tool: str, **given: Any) -> bytes:
    return line("tools/call", identifier, name=tool, arguments=given)


INITIALIZE = line("initialize", "i", protocolVersion="2025-06-18", clientInfo={"name": "clients"})


@contextmanager
def started(bus: Daemon, session: str, **streams: Any) -> Iterator[subprocess.Popen[bytes]]:
    """An adapter on streams of the test's own; killed at the end."""
    command = [sys.executable, "-m", "agentbus", "mcp", *arguments(session)]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE} | streams
    with subprocess.Popen(command, env=bus.environment, **streams) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: psutil.Process) -> bool:
    """Whether it is gone but for whoever has to reap it."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def attached(bus: Daemon, session: str) -> dict[str, Any] | None:
    """The row of a session while it is attached."""
    rows = bus.status()["sessions"]
    return next((row for row in rows if row["session"] == session and row["attached"]), None)


def present(bus: Daemon, session: str) -> dict[str, Any]:
    """The row of a session that is attached."""
    row = attached(bus, session)
    assert row is not None
    return row


def general(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(s for s in row["subscriptions"] if s["channel"] == "general")
    return found


def contents(result: dict[str, Any]) -> list[str]:
    return [message["content"] for message in result["messages"]]


def drained(reader: Adapter, last: str) -> list[str]:
    """Everything up to a content, by as many recvs as it takes."""
    got: list[str] = []
    while last not in got:
        more = contents(reader.call("recv", wait_seconds=30))
        assert more, f"{last} does not come; there were {got}"
        got += more
    return got


# 9: no adapter without a harness


@pytest.mark.parametrize("said", [b"", INITIALIZE, INITIALIZE + call(1, "recv", wait_seconds=60)])
def test_row_9_it_ends_with_its_input(bus: Daemon, said: bytes) -> None:
    with started(bus, "eof") as adapter:
        assert adapter.stdin is not None
        assert adapter.stdout is not None
        adapter.stdin.write(said)
        adapter.stdin.flush()
        if said:
            adapter.stdout.readline()
        began = time.monotonic()
        adapter.stdin.close()
        assert adapter.wait(ENDS_AT_MOST) == 0
        assert time.monotonic() - began < ENDS_AT_MOST
    assert wait(lambda: attached(bus, "eof") is None)


@pytest.mark.parametrize("stopped", [False, True], ids=["daemon runs", "daemon stopped"])
def test_row_9_it_ends_with_a_killed_parent_that_leaves_its_pipes_open(
    bus: Daemon, stopped: bool
) -> None:
    theirs, ours = socket.socketpair()
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen(sys.argv[1:])\n"
        "print(child.pid, file=sys.stderr, flush=True)\n"
        "child.wait()\n"
    )
    command = [sys.executable, "-c", code, sys.executable, "-m", "agentbus", "mcp"]
    daemon = [psutil.Process(bus.pid(name)) for name in ("supervisor", "gateway")]
    with theirs, ours:
        parent = subprocess.Popen(
            [*command, *arguments("orphan")],
            env=bus.environment,
            stdin=theirs,
            stdout=theirs,
            stderr=subprocess.PIPE,
        )
        assert parent.stderr is not None
        with parent, parent.stderr:
            adapter = psutil.Process(int(parent.stderr.readline()))
            ours.sendall(INITIALIZE + call(1, "recv", wait_seconds=60))
            assert wait(lambda: attached(bus, "orphan") is not None)
            for process in daemon if stopped else ():
                process.suspend()
            try:
                parent.kill()
                assert wait(lambda: ended(adapter), ENDS_AT_MOST)
            finally:
                for process in reversed(daemon):
                    process.resume()
    assert wait(lambda: attached(bus, "orphan") is None)


# 1: delivered is what the harness has


def test_row_1_what_was_only_prefetched_is_redelivered_and_the_cursor_has_not_moved(
    bus: Daemon,
) -> None:
    with bus.peer() as peer:
        sender = peer.attach("row-1-sender")
        with Adapter(bus.environment, *arguments("row-1")) as adapter:
            assert adapter.call("whoami")["agent"] == "row-1"
            row = present(bus, "row-1")
            before = general(row)["position"]
            for number in range(100):
                sender.send("general", f"row-1-{number}", str(number))

            assert wait(lambda: present(bus, "row-1")["window"]["messages"] >= 100)
            adapter.kill()
    assert wait(lambda: attached(bus, "row-1") is None)
    with Adapter(bus.environment, *arguments("row-1")) as heir:
        assert heir.call("whoami")["subscriptions"]
        row = present(bus, "row-1")
        assert general(row)["position"] == before
        assert general(row)["lag"] == 100
        assert drained(heir, "99") == [str(number) for number in range(100)]


# 2: what is told unasked is only a hint


class Heedless(Adapter):
    """Throws away whatever it is told unasked."""

    def __init__(self, *given: Any) -> None:
        self.dropped = 0
        super().__init__(*given)

    def _lines(self, deadline: float) -> list[bytes]:
        lines = super()._lines(deadline)
        kept = [each for each in lines if b'"method":' not in each]
        self.dropped += len(lines) - len(kept)
        return kept


def test_row_2_who_hears_no_notification_gets_everything_and_status_shows_how_old_it_is(
    bus: Daemon,
) -> None:
    with Heedless(bus.environment, *arguments("row-2")) as idle, bus.peer() as peer:
        idle.ask("resources/subscribe", uri="agentbus://inbox")
        idle.call("recv")
        sender = peer.attach("row-2-sender")
        first = sender.send("general", "row-2-0", "0")["sent_at"]
        for number in range(1, 50):
            sender.send("general", f"row-2-{number}", str(number))
        assert wait(lambda: present(bus, "row-2")["window"]["messages"] >= 50)
        row = present(bus, "row-2")
        assert general(row)["oldest_undelivered_at"] == first
        assert general(row)["lag"] == 50
        assert wait(lambda: idle.call("whoami") and idle.dropped > 0)
        assert drained(idle, "49") == [str(number) for number in range(50)]
        assert wait(lambda: general(present(bus, "row-2"))["lag"] == 0)
        row = present(bus, "row-2")
        assert general(row).get("oldest_undelivered_at") is None


# the harness closes stdin in the middle of a call


def test_a_call_whose_harness_closes_stdin_at_once_is_carried_out_and_answered(
    bus: Daemon,
) -> None:
    with started(bus, "mid-call") as adapter:
        out, _ = adapter.communicate(
            INITIALIZE + call(1, "send", channel="general", content="x", message_id="mid-call"),
            timeout=30,
        )
    answers = {answer["id"]: answer for answer in map(json.loads, out.splitlines())}
    sent = answers[1]["result"]["structuredContent"]
    assert (sent["message_id"], sent["duplicate"]) == ("mid-call", False)
    with Adapter(bus.environment, *arguments("mid-call")) as again:
        retried = again.call("send", channel="general", content="x", message_id="mid-call")
    assert (retried["seq"], retried["duplicate"]) == (sent["seq"], True)


def test_a_recv_whose_harness_closes_stdin_delivers_nothing_more(bus: Daemon) -> None:
    with bus.peer() as peer, started(bus, "eof-recv") as adapter:
        assert adapter.stdin is not None
        assert adapter.stdout is not None
        adapter.stdin.write(INITIALIZE + call(1, "whoami") + call(2, "recv", wait_seconds=60))
        adapter.stdin.flush()
        for _ in range(2):
            adapter.stdout.readline()
        adapter.stdin.close()
        result = json.loads(adapter.stdout.readline())["result"]["structuredContent"]
        assert result["messages"] == []
        peer.attach("eof-sender").send("general", "eof-late", "late")
        adapter.wait(ENDS_AT_MOST)
    with Adapter(bus.environment, *arguments("eof-recv")) as heir:
        assert contents(heir.call("recv", wait_seconds=30)) == ["late"]


# stdout that breaks


def broken_pipe() -> Any:
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "wb")


def full() -> Any:
    return open("/dev/full", "wb")


@pytest.mark.parametrize("kind", [broken_pipe, full])
def test_what_cannot_be_written_is_no_delivery_and_ends_the_adapter(bus: Daemon, kind: Any) -> None:
    session = f"unwritable-{kind.__name__}"
    with Adapter(bus.environment, *arguments(session)) as first:
        first.call("recv")
    with bus.peer() as peer:
        peer.attach(f"{session}-sender").send("general", f"{session}-1", session)
    with kind() as stdout, started(bus, session, stdout=stdout) as adapter:
        assert adapter.stdin is not None
        try:
            adapter.stdin.write(INITIALIZE + call(1, "recv", wait_seconds=20))
            adapter.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended already
        assert adapter.wait(20) == 0
    with Adapter(bus.environment, *arguments(session)) as heir:
        assert contents(heir.call("recv", wait_seconds=30)) == [session]


def test_a_reader_that_goes_in_the_middle_of_a_result_was_handed_nothing(bus: Daemon) -> None:
    with Adapter(bus.environment, *arguments("half-read")) as first:
        first.call("recv")
    large = "y" * 60_000
    with bus.peer() as peer:
        sender = peer.attach("half-read-sender")
        for number in range(20):
            sender.send("general", f"half-read-{number}", f"{number} {large}")
    with started(bus, "half-read") as adapter:
        assert adapter.stdin is not None
        assert adapter.stdout is not None
        adapter.stdin.write(INITIALIZE + call(1, "recv", wait_seconds=20, max_kib=4096))
        adapter.stdin.flush()
        adapter.stdout.readline()
        assert adapter.stdout.read(1000)
        adapter.stdout.close()
        assert adapter.wait(20) == 0
    with Adapter(bus.environment, *arguments("half-read")) as heir:
        got: list[str] = []
        while len(got) < 20:
            got += contents(heir.call("recv", wait_seconds=30, max_kib=4096))
    assert [int(content.split()[0]) for content in got] == list(range(20))


@pytest.mark.parametrize("how", ["signal", "end of input"])
def test_a_harness_that_never_reads_is_not_read_from_for_ever(bus: Daemon, how: str) -> None:
    """What waits for it is bounded: its requests stay in its own pipe, and so does their end."""
    with started(bus, "deaf-harness") as adapter:
        assert adapter.stdin is not None
        os.set_blocking(adapter.stdin.fileno(), False)
        adapter.stdin.write(INITIALIZE)
        adapter.stdin.flush()
        assert wait(lambda: attached(bus, "deaf-harness") is not None)
        before = resident(adapter.pid)
        flood = line("tools/list", 1) * 1000
        written, quiet = 0, time.monotonic()
        while time.monotonic() - quiet < 2:
            try:
                written += os.write(adapter.stdin.fileno(), flood)
                quiet = time.monotonic()
            except BlockingIOError:
                time.sleep(0.02)
        assert resident(adapter.pid) - before < 64 * MIB
        assert attached(bus, "deaf-harness") is not None
        if how == "signal":
            adapter.send_signal(signal.SIGTERM)
        else:
            with suppress(BrokenPipeError):
                adapter.stdin.close()
        assert adapter.wait(ENDS_AT_MOST) == 0


@pytest.mark.parametrize("garbage", [b"x" * MIB, b"\n" * MIB], ids=["one line", "empty lines"])
def test_a_hundred_megabytes_of_garbage_cost_the_adapter_little(
    bus: Daemon, garbage: bytes
) -> None:
    with Adapter(bus.environment, *arguments("garbage")) as adapter:
        adapter.call("recv")
        before = most = resident(adapter.pid)
        for _ in range(100):
            adapter.write(garbage)
            most = max(most, resident(adapter.pid))
        adapter.write(b"\n")
        assert adapter.call("whoami")["agent"] == "garbage"
        assert most - before < 32 * MIB


# recvs that are given up


class Impatient(Adapter):
    """Gives recvs up after a moment, as harnesses do at their limit."""

    def receive(self, moment: float) -> list[str]:
        """What a recv showed before the cancellation reached it, if it did."""
        number = self.request("tools/call", name="recv", arguments={"wait_seconds": 20})
        time.sleep(moment)  # what is tested is where it is caught
        self.write(line("notifications/cancelled", requestId=number))
        self.ask("ping")
        answer = self._answers.pop(number, None)
        return contents(self.structured(answer["result"])) if answer else []


@pytest.mark.timeout(180)
def test_recvs_cancelled_at_any_moment_lose_and_repeat_nothing(bus: Daemon) -> None:
    chance = random.Random(4)
    with Impatient(bus.environment, *arguments("impatient")) as reader, bus.peer() as peer:
        reader.call("recv")
        sender = peer.attach("impatient-sender")
        seen: list[str] = []
        asked = []
        for number in range(150):
            params = {"channel": "general", "message_id": f"imp-{number}", "content": str(number)}
            asked.append(peer.request("send", attachment=sender.id, **params))
            seen += reader.receive(chance.choice([0.0, 0.0005, 0.002, 0.005, 0.02]))
        for each in asked:
            peer.result(each)
        if "149" not in seen:
            seen += drained(reader, "149")
        assert seen == [str(number) for number in range(150)]


# a machine that sleeps


@pytest.mark.timeout(240)
def test_a_recv_that_everything_slept_through_goes_on(bus: Daemon) -> None:
    with Adapter(bus.environment, *arguments("sleeper")) as reader, bus.peer() as peer:
        reader.call("recv")
        sender = peer.attach("awake")
        number = reader.request("tools/call", name="recv", arguments={"wait_seconds": 20})
        reader.ask("ping")
        supervisor = psutil.Process(bus.pid("supervisor"))
        everybody = [supervisor, *supervisor.children(recursive=True), psutil.Process(reader.pid)]
        # the supervisor first and last: it must not see its children stopped while it is awake
        for process in everybody:
            process.suspend()
        time.sleep(40)  # longer than any silence that anybody puts up with
        for process in reversed(everybody):
            process.resume()
        result = reader.structured(reader.answer(number)["result"])
        assert "error" not in result
        sender.send("general", "after-sleep", "good morning")
        if not result["messages"]:
            result = reader.call("recv", wait_seconds=30)
        assert contents(result) == ["good morning"]
