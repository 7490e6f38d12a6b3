"""A person at a terminal among agents: `send`, `tail` and `search`."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.daemon import BOUND, Daemon, wait
from tests.support.stdio import Adapter
from tests.support.traffic import Member

AGENTBUS = [sys.executable, "-m", "agentbus"]


@pytest.fixture
def bus() -> Iterator[Daemon]:
    """A running daemon."""
    with Daemon() as daemon:
        daemon.start()
        yield daemon


@pytest.fixture
def agent(bus: Daemon) -> Iterator[Adapter]:
    """Somebody to talk to."""
    with Adapter(bus.environment, "--application", "tests", "--session", "a") as adapter:
        adapter.call("whoami")
        yield adapter


def run(bus: Daemon, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*AGENTBUS, *arguments],
        env=bus.environment,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
        **({"stdin": subprocess.DEVNULL} | options),
    )


class Tailing:
    """A running `tail`, whose lines come in as they are written."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def until(self, wanted: Callable[[str], bool]) -> list[str]:
        """The lines up to the first that is wanted."""
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line.rstrip("\n"))
            if wanted(lines[-1]):
                return lines
        raise AssertionError(f"it ended with {lines}")

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Ends it; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(BOUND)


@contextmanager
def tailing(bus: Daemon, *arguments: str) -> Iterator[Tailing]:
    with subprocess.Popen(
        [*AGENTBUS, "tail", *arguments],
        env={**bus.environment, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Tailing(process)
        finally:
            process.kill()


def cursors(bus: Daemon, application: str = "terminal") -> int:
    sessions = [each for each in bus.status()["sessions"] if each["application"] == application]
    return sum(len(each["subscriptions"]) for each in sessions)


def test_what_a_person_sends_reaches_an_agent(bus: Daemon, agent: Adapter) -> None:
    sent = run(bus, "send", "general", "hello", "--as", "Kim", "--type", "greeting")
    (message,) = agent.call("recv", wait_seconds=10)["messages"]
    assert sent.stdout == f"general 1: {message['message_id']}\n"
    names = (message["sender"], message["agent"], message["application"])
    assert names == ("Kim", "Kim", "terminal")
    assert (message["content"], message["type"]) == ("hello", "greeting")


def test_an_answer_is_in_the_thread(bus: Daemon, agent: Adapter) -> None:
    asked = agent.call("send", channel="general", content="green?")["message_id"]
    told = json.loads(run(bus, "send", "general", "yes", "--reply-to", asked, "--json").stdout)
    (answer,) = agent.call("recv", wait_seconds=10)["messages"]
    assert (answer["message_id"], answer["thread"]) == (told["message_id"], asked)


def test_what_is_piped_in_is_sent_as_it_is(bus: Daemon, agent: Adapter) -> None:
    text = "Zeile\n\t日本語 \x1b[31m '\"$(id)`\n"
    assert run(bus, "send", "general", "-", input=text, stdin=None).returncode == 0
    assert run(bus, "send", "general", input="again\n", stdin=None).returncode == 0
    first, second = agent.call("recv", wait_seconds=10, max_messages=2)["messages"]
    assert (first["content"], second["content"]) == (text[:-1], "again")


def test_what_cannot_be_sent_says_why(bus: Daemon) -> None:
    def refused(*arguments: str, given: bytes | None = None) -> str:
        ended = subprocess.run(
            [*AGENTBUS, "send", *arguments],
            env=bus.environment,
            input=given or b"",
            capture_output=True,
            timeout=BOUND,
            check=False,
        )
        assert ended.returncode == 1, ended
        return ended.stderr.decode()

    assert "--create" in refused("nowhere", "x")
    assert "UTF-8" in refused("general", given=b"\xff\xfe")
    assert "message_too_large" in refused("general", given=b"x" * 70_000)
    assert "invalid_argument" in refused("general", "x", "--as", "a\nb")
    assert "invalid_argument" in refused("general", "x", "--as", "")


def test_a_channel_is_made_where_that_is_asked_for(bus: Daemon) -> None:
    assert run(bus, "send", "new", "first", "--create").stdout.startswith("new 1: ")
    assert run(bus, "send", "new", "second", "--create").stdout.startswith("new 2: ")


def test_tail_shows_what_was_and_what_comes(bus: Daemon, agent: Adapter) -> None:
    for word in ("one", "two", "three"):
        agent.call("send", channel="general", content=word)
    with tailing(bus, "-n", "2") as tail:
        shown = tail.until(lambda line: line.endswith("three"))
        assert [line.rpartition(" ")[2] for line in shown[1:]] == ["two", "three"]
        agent.call("send", channel="general", content="four")
        tail.until(lambda line: line.endswith("four"))
        agent.call("create_channel", name="later")
        agent.call("send", channel="later", content="five")
        shown = tail.until(lambda line: line.endswith("five"))
        assert "later" in shown[-1]
        assert cursors(bus) >= 2
        assert tail.end() == 0
    assert cursors(bus) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_tail_that_is_ended_otherwise_leaves_no_cursor_either(
    bus: Daemon, number: signal.Signals
) -> None:
    with tailing(bus, "general") as tail:
        assert wait(lambda: cursors(bus) == 1)
        assert tail.end(number) == 0
    assert cursors(bus) == 0


def test_tail_outlives_daemons_and_misses_nothing(bus: Daemon) -> None:
    sender = Member(bus, "sender")
    with tailing(bus, "general", "--json", "-n", "0") as tail:
        assert wait(lambda: cursors(bus) == 1)
        for number in range(30):
            if number == 10:
                bus.kill("gateway")
            if number == 20:
                bus.stop()
            sender.insist("send", channel="general", content=str(number), message_id=f"n{number}")
        sender.end()
        lines = [json.loads(line) for line in tail.until(lambda line: '"29"' in line)]
    contents = [line["content"] for line in lines if "content" in line]
    assert contents == [str(number) for number in range(30)]


def test_two_tails_and_a_send_of_one_terminal_do_not_disturb_each_other(bus: Daemon) -> None:
    with tailing(bus, "general") as first, tailing(bus, "general") as second:
        assert wait(lambda: cursors(bus) == 2)
        run(bus, "send", "general", "to both")
        for tail in (first, second):
            tail.until(lambda line: line.endswith("to both"))


def test_many_sends_make_few_sessions(bus: Daemon) -> None:
    for number in range(5):
        run(bus, "send", "general", str(number))
    sessions = [each for each in bus.status()["sessions"] if each["application"] == "terminal"]
    assert len(sessions) == 1


def test_memories_are_shown_as_they_change(bus: Daemon, agent: Adapter) -> None:
    with tailing(bus, "memory") as tail:
        assert wait(lambda: cursors(bus) == 1)
        made = agent.call("send", channel="memory", content="the port is 1")
        tail.until(lambda line: line.endswith("(memory): the port is 1"))
        agent.call("memory_edit", memory_id=made["memory_id"], content="the port is 2")
        tail.until(lambda line: line.endswith("(memory, revision 2): the port is 2"))
        agent.call("memory_delete", memory_id=made["memory_id"])
        tail.until(lambda line: line.endswith("was deleted"))


def test_a_channel_that_is_not_there_cannot_be_followed(bus: Daemon) -> None:
    ended = run(bus, "tail", "nowhere")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "nowhere" in ended.stderr


def test_a_reader_that_goes_away_ends_tail(bus: Daemon, agent: Adapter) -> None:
    with tailing(bus, "general") as tail:
        assert wait(lambda: cursors(bus) == 1)
        assert tail.process.stdout is not None
        tail.process.stdout.close()
        agent.call("send", channel="general", content="x" * 1000)
        tail.process.wait(BOUND)


def test_search_finds_what_was_said(bus: Daemon, agent: Adapter) -> None:
    for word in ("alpha beta", "alpha gamma", "delta"):
        agent.call("send", channel="general", content=word)
    shown = run(bus, "search", "alpha").stdout.splitlines()
    assert [line.partition(": ")[2] for line in shown[1:]] == ["alpha beta", "alpha gamma"]
    document = json.loads(run(bus, "search", "alpha", "--json", "-n", "1").stdout)
    assert [each["message"]["content"] for each in document["results"]] == ["alpha gamma"]
    assert document["more"] is True


def test_a_search_without_results_says_so(bus: Daemon) -> None:
    ended = run(bus, "search", 'nothing " ( NEAR')
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "nothing found\n")


def test_on_a_terminal_there_are_colours_and_no_color_is_heeded(
    bus: Daemon, agent: Adapter
) -> None:
    agent.call("send", channel="general", content="hello")

    def on_a_terminal(**environment: str) -> bytes:
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [*AGENTBUS, "tail", "--no-follow"],
            env={**bus.environment, "TERM": "xterm-256color", **environment},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        ) as process:
            os.close(theirs)
            process.wait(BOUND)
        shown = os.read(ours, 1 << 16)
        os.close(ours)
        return shown

    assert b"hello" in on_a_terminal()
    assert b"\x1b[" in on_a_terminal()
    plain = on_a_terminal(NO_COLOR="1")
    assert b"\x1b[3" not in plain
    assert b"\x1b[9" not in plain
