"""`status --watch` on a real terminal device."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest

from tests.support.daemon import BOUND, Daemon

WATCH = [sys.executable, "-m", "agentbus", "status", "--watch"]
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class Terminal:
    """A terminal of 80 by 24 with the dashboard on it."""

    def __init__(self, bus: Daemon) -> None:
        self._ours, self._theirs = pty.openpty()
        termios.tcsetwinsize(self._theirs, (24, 80))
        self.before = termios.tcgetattr(self._theirs)
        self.process = subprocess.Popen(
            WATCH,
            env={**bus.environment, "TERM": "xterm-256color", "LANG": "C.UTF-8"},
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
        )
        self.shown = b""

    def close(self) -> None:
        """Ends it anyhow."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def until(self, wanted: bytes) -> None:
        """Reads until it is shown, after what was shown before."""
        start = len(self.shown)
        deadline = time.monotonic() + BOUND
        while wanted not in self.shown[start:]:
            assert select.select([self._ours], [], [], deadline - time.monotonic())[0], self.shown
            self.shown += os.read(self._ours, 1 << 16)

    def press(self, keys: bytes) -> None:
        """As a person does."""
        os.write(self._ours, keys)

    def attributes(self) -> list[object]:
        """How the terminal is set at the moment."""
        return termios.tcgetattr(self._theirs)


@pytest.fixture
def bus() -> Iterator[Daemon]:
    """A running daemon."""
    with Daemon() as daemon:
        daemon.start()
        yield daemon


@pytest.fixture
def terminal(bus: Daemon) -> Iterator[Terminal]:
    """The dashboard of that bus."""
    terminal = Terminal(bus)
    yield terminal
    terminal.close()


def test_it_stays_heeds_keys_and_leaves_the_terminal_as_it_was(terminal: Terminal) -> None:
    terminal.until(b"q quit")
    assert ENTER in terminal.shown
    terminal.press(b"\t\t")
    terminal.until(b"supervisor")
    terminal.press(b"/zzz")
    terminal.until(b"zzz")
    terminal.press(b"\x1b")
    terminal.until(b"supervisor")
    terminal.press(b"q")
    terminal.until(LEAVE)
    assert terminal.process.wait(BOUND) == 0
    assert terminal.attributes() == terminal.before


@pytest.mark.parametrize("number", [2, 15, 1])
def test_signals_leave_the_terminal_as_it_was(terminal: Terminal, number: int) -> None:
    terminal.until(b"q quit")
    terminal.process.send_signal(number)
    terminal.until(LEAVE)
    assert terminal.process.wait(BOUND) == 0
    assert terminal.attributes() == terminal.before


def test_it_outlives_the_daemon(bus: Daemon, terminal: Terminal) -> None:
    terminal.until(b"q quit")
    bus.stop()
    terminal.until(b"not running")
    bus.start()
    terminal.until(b"ready")


def test_without_a_terminal_it_says_so(bus: Daemon) -> None:
    ended = subprocess.run(
        WATCH, env=bus.environment, capture_output=True, text=True, timeout=BOUND, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "terminal" in ended.stderr
