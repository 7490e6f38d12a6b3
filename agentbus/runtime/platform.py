"""The one seam between agentbus and the operating system's differences (Linux, macOS)."""

from __future__ import annotations

import importlib
import os
import signal
import socket
import struct
import sys
from typing import Any, Final, Literal

ProcessState = Literal["running", "stopped", "gone"]

LINUX: Final = sys.platform.startswith("linux")

_PR_SET_PDEATHSIG: Final = 1
_SOL_LOCAL: Final = 0
_LOCAL_PEERCRED: Final = 1
_XUCRED_BYTES: Final = 76
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3

KEPT_BYTES: Final = 8 * 1024 * 1024
"""Freed memory that a process may keep, and as much as is moved through the daemon in one turn."""


def peer_uid(sock: socket.socket) -> int:
    """The user at the other end of a connected Unix socket. Raises OSError when it is gone."""
    if LINUX:
        raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", raw)[1])
    raw = sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_BYTES)
    return int(struct.unpack_from("2I", raw)[1])


def die_with_parent(parent: int) -> None:
    """Has the kernel kill this process when its parent ends; ends it now if that has happened.

    Call it in the child, with the pid that the parent had before the fork. It survives exec.
    Elsewhere than on Linux only the check is made, and a closing pipe has to tell the rest.
    """
    if LINUX:
        ctypes = importlib.import_module("ctypes")  # only processes that fork pay for it
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def keep_freed_memory() -> None:
    """Has the allocator keep what is freed, up to `KEPT_BYTES`, instead of giving it back.

    Who moves megabytes of lines and frames a turn would get each page anew from the kernel, which
    clears it first. Only glibc gives memory back so soon, and only there this does something.
    """
    mallopt = getattr(importlib.import_module("ctypes").CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)


def process_state(pid: int) -> ProcessState:
    """What the kernel says of a process; a zombie is gone."""
    if not LINUX:
        return _process_state_by_psutil(pid)
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            letter = file.read().rpartition(b")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "gone"
    if letter in b"ZX":
        return "gone"
    return "stopped" if letter == b"T" else "running"


def _process_state_by_psutil(pid: int) -> ProcessState:
    psutil: Any = importlib.import_module("psutil")
    try:
        status = psutil.Process(pid).status()
    except psutil.NoSuchProcess:
        return "gone"
    if status == psutil.STATUS_ZOMBIE:
        return "gone"
    return "stopped" if status == psutil.STATUS_STOPPED else "running"


def command_line(pid: int) -> str:
    """The arguments of a process as `ps` shows them, separated by blanks; empty when it is gone."""
    if LINUX:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return os.fsdecode(file.read().replace(b"\0", b" ")).strip()
        except (FileNotFoundError, ProcessLookupError):
            return ""
    psutil: Any = importlib.import_module("psutil")
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return ""


BACKGROUND: Final = 10
"""How much nicer a process in the background is: about a tenth of the share of the others."""


def step_back() -> None:
    """Lets every other process go first where both cores are wanted; there is no way back."""
    os.nice(BACKGROUND)


def set_title(title: str) -> None:
    """What `ps` shows. Nothing on macOS, where setting it in a forked child is not safe."""
    if LINUX:
        importlib.import_module("setproctitle").setproctitle(title)
