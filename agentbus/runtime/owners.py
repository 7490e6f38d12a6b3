"""Whose a lock is: what stands in a lock file, and whether anybody holds it.

What stands there is for people, for a second daemon and for `stop`, and only means something while
the lock is held.
"""

from __future__ import annotations

import fcntl
import os

import msgspec

from agentbus.errors import UnsafePermissions
from agentbus.runtime.paths import Paths


class Owner(msgspec.Struct, frozen=True):
    """The content of a lock file."""

    pid: int
    socket: str
    runtime_directory: str = ""


def read(path: str) -> Owner | None:
    """Who has written a lock file last."""
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=Owner)
    except (OSError, msgspec.DecodeError):
        return None


def is_locked(path: str) -> bool:
    """Whether a process holds a lock. Raises UnsafePermissions where that cannot be seen."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise UnsafePermissions(f"{path} cannot be opened ({error.strerror})") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def living(paths: Paths) -> Owner | None:
    """The daemon of a runtime directory, while one of its processes lives: all hold its lock, and
    that of its data, by which it is known where its runtime directory was removed."""
    if is_locked(paths.lock):
        return read(paths.lock) or Owner(0, paths.socket, paths.runtime_directory)
    owner = read(paths.data_lock) if is_locked(paths.data_lock) else None
    here = owner is not None and owner.runtime_directory == paths.runtime_directory
    return owner if here else None
