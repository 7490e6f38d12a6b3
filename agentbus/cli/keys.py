"""The keys of a terminal, one at a time, as they are pressed."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from types import TracebackType
from typing import Any, Final

NAMES: Final = {
    "\t": "tab",
    "\r": "enter",
    "\n": "enter",
    "\x03": "ctrl-c",
    "\x1b": "escape",
    "\x7f": "backspace",
    "\b": "backspace",
}
SEQUENCES: Final = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[H": "home",
    "\x1b[1~": "home",
}
_MOST: Final = 4096


class Keys:
    """Stdin without line editing and echo, within a `with`; a pipe is read as if it were one."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()
        self._before: list[Any] | None = None
        self._open = True

    def __enter__(self) -> Keys:
        if os.isatty(self._fd):
            self._before = termios.tcgetattr(self._fd)
            tty.setcbreak(self._fd)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def wait(self, seconds: float) -> list[str]:
        """The keys that were pressed, at the latest after so many seconds."""
        ready, _, _ = select.select([self._fd] if self._open else [], [], [], max(0.0, seconds))
        if not ready:
            return []
        data = os.read(self._fd, _MOST)
        self._open = bool(data)
        return read(data.decode(errors="ignore"))


def read(typed: str) -> list[str]:
    """Characters and names of keys; sequences that nobody has named are left out."""
    keys: list[str] = []
    while typed:
        known = next((each for each in SEQUENCES if typed.startswith(each)), None)
        if known is not None:
            keys.append(SEQUENCES[known])
            typed = typed[len(known) :]
        elif typed[0] == "\x1b" and len(typed) > 1:
            typed = _after_unknown(typed)
        else:
            keys.append(NAMES.get(typed[0], typed[0]))
            typed = typed[1:]
    return [key for key in keys if len(key) > 1 or key.isprintable()]


def _after_unknown(typed: str) -> str:
    """What follows a sequence: it ends with its first letter or tilde."""
    for place, each in enumerate(typed[1:], start=1):
        if (each.isalpha() and typed[1] != "O") or each == "~":
            return typed[place + 1 :]
        if typed[1] == "O" and place == 2:
            return typed[place + 1 :]
    return ""
