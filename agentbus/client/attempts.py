"""One attempt to start a daemon, shared by all who need one at the same time.

Each process costs as much as an adapter, and of twenty daemons nineteen would leave again. So
whoever starts one takes a lock on `start.lock` and hands it on to the daemon, which keeps it until
it has told how it went; the others wait for that. What stands in the file then:

    {"kind":"9f...","token":"41..."}    written by who started it: what was tried, and which time
    {"ready":true,"pid":7}              its report, as on the pipe of who started it

The lock is free when the daemon has reported, or died: a starter that is killed hinders nobody. It
guards no data; where it cannot be had, daemons are started as they come, and one of them stays.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Mapping
from typing import Final

import msgspec

from agentbus.config import Configuration
from agentbus.digest import digest
from agentbus.runtime.tokens import SystemTokens

LONGEST: Final = 65536
"""Bytes of the file that are looked at."""

_DECIDE: Final = ("AGENTBUS_", "PYTHON")
_DECIDE_TOO: Final = frozenset({"HOME", "PATH"})


class _Heading(msgspec.Struct, frozen=True):
    kind: str
    token: str = ""


def kind(configuration: Configuration, environ: Mapping[str, str]) -> str:
    """The same for attempts that fail for the same reasons."""
    relevant = {
        name: value
        for name, value in environ.items()
        if name in _DECIDE_TOO or name.startswith(_DECIDE)
    }
    settings = configuration.settings.fingerprint()
    what = [sys.executable, configuration.path, configuration.exists, settings, relevant]
    return digest(msgspec.json.encode(what, order="deterministic"), 8).hex()


def take(path: str) -> int | None:
    """The lock, as a descriptor; None while another has it. Raises OSError."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException as error:
        os.close(fd)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return fd


def begin(fd: int, tried: str) -> None:
    """Heads the file with an attempt; its report is written behind that. Raises OSError."""
    os.ftruncate(fd, 0)
    os.write(fd, msgspec.json.encode(_Heading(tried, SystemTokens().token())) + b"\n")


def look(path: str) -> bytes:
    """What stands in the file; nothing where it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(fd, LONGEST)
    except OSError:
        return b""
    finally:
        os.close(fd)


def outcome(content: bytes) -> tuple[str, bytes] | None:
    """What was tried, and the report; None while there is none."""
    heading, _, report = content.partition(b"\n")
    if not report.endswith(b"\n"):
        return None
    try:
        return msgspec.json.decode(heading, type=_Heading).kind, report
    except msgspec.MsgspecError:
        return None
