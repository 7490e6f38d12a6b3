"""What the operating system refuses, told to people: what happened, whose fault it is, what to do.

A number or a constant's name helps nobody who has not read the system's manual.
"""

from __future__ import annotations

import errno
from typing import Final

from agentbus.errors import (
    AgentbusError,
    InternalError,
    StorageFailed,
    Unavailable,
    UnsafePermissions,
)

NO_ROOM: Final = {
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "the file system is full",
    errno.EDQUOT: "the file system is full for this user",
}
_FORBIDDEN: Final = frozenset({errno.EACCES, errno.EPERM})
_USED_UP: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOBUFS})


def told(error: OSError, doing: str) -> AgentbusError:
    """`doing` says what was tried, as in "the log cannot be written"."""
    what = f"{doing}: {error.filename}" if isinstance(error.filename, str) else doing
    reason = error.strerror or type(error).__name__
    if error.errno in NO_ROOM:
        return StorageFailed(f"{what}: {NO_ROOM[error.errno]}; make room there, then try again")
    if error.errno == errno.EIO:
        return StorageFailed(f"{what}: the device fails ({reason}); look at the disk")
    if error.errno in _FORBIDDEN:
        return UnsafePermissions(
            f"{what}: you may not ({reason}); look at whose it is and its mode"
        )
    if error.errno in _USED_UP:
        return Unavailable(f"{what}: the system has no more to give ({reason}); close something")
    return InternalError(f"{what}: {reason}")


def of_storage(path: str, error: OSError) -> StorageFailed | None:
    """A file system that cannot store; None for another reason (a permission, a missing name)."""
    if error.errno == errno.EIO:
        return StorageFailed(f"{path} cannot be written: the device fails; look at the disk")
    what = NO_ROOM.get(error.errno or 0)
    if what is None:
        return None
    read_only = error.errno == errno.EROFS
    advice = "make it writable, or choose another place" if read_only else "free some space there"
    return StorageFailed(f"{path} cannot be written: {what}; {advice}, then try again")
