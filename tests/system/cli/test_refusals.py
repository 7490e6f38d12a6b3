"""Places that cannot be used: every command says so in one line of words, without a traceback or an
error number."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from tests.support.daemon import BOUND, Daemon

COMMANDS = [["daemon"], ["daemon", "--foreground"], ["status"], ["stop"], ["reset", "--yes"]]
PLACES = ["/dev/null/run", "/proc/1/run", "/sys/run"]


def run(bus: Daemon, command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "agentbus", *command],
        env={**bus.environment, **environment},
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )


def is_plain(done: subprocess.CompletedProcess[str]) -> bool:
    lines = done.stderr.splitlines()
    odd = ("Traceback", "Errno", "Error(")
    return len(lines) <= 1 and not any(each in done.stdout + done.stderr for each in odd)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_runtime_directory_that_cannot_be(command: list[str], place: str) -> None:
    with Daemon() as bus:
        done = run(bus, command, AGENTBUS_RUNTIME_DIR=place)
        assert is_plain(done), done.stderr
        if command[0] in ("daemon", "reset"):
            assert done.returncode == 1
            assert place in done.stderr
            assert "make it yourself, with mode 700, or choose another place" in done.stderr


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_data_directory_that_cannot_be(command: list[str], place: str) -> None:
    with Daemon(data_directory=place) as bus:
        done = run(bus, command)
        assert is_plain(done), done.stderr
        if command[0] in ("daemon", "reset"):
            assert done.returncode == 1
            assert place in done.stderr


@pytest.mark.parametrize("command", [["status"], ["stop"]], ids=" ".join)
def test_a_socket_that_is_no_socket(command: list[str]) -> None:
    with Daemon() as bus:
        os.makedirs(bus.paths.socket, 0o700)
        done = run(bus, command)
        assert is_plain(done), done.stderr


STREAMS = {0: "<&-", 1: ">&-", 2: "2>&-"}
SPEAKING = [
    ["status"],
    ["status", "--json"],
    ["doctor"],
    ["send", "general", "x"],
    ["search", "x"],
    ["tail", "--no-follow"],
    ["send", "general", os.fsdecode(b"\xff")],
    ["search", os.fsdecode(b"\xff")],
    ["tail", os.fsdecode(b"\xff")],
    ["send", "general", "x", "--as", os.fsdecode(b"\xff")],
]


def test_closed_streams_and_arguments_that_are_no_text_break_nothing() -> None:
    with Daemon() as bus:
        bus.start()
        for command in SPEAKING:
            for closed in ("", *STREAMS.values(), "<&- >&-", "<&- >&- 2>&-"):
                line = f"{sys.executable} -m agentbus {shlex.join(command)} {closed}"
                done = subprocess.run(
                    ["/bin/sh", "-c", line],
                    env=bus.environment,
                    capture_output=True,
                    text=True,
                    timeout=BOUND,
                    check=False,
                )
                assert is_plain(done), (line, done.stderr)
                assert done.returncode in (0, 1), line
                assert (done.returncode == 0) == ("\udcff" not in "".join(command)), line
