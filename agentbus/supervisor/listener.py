"""The socket that adapters connect to: made once, inherited by every gateway."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
from typing import Final

from agentbus.errors import UnsafePermissions
from agentbus.runtime import refusals

BACKLOG: Final = 512
"""Connects that wait while a gateway is replaced."""

DESCRIPTORS: Final = (65536, 10240)
"""Wanted soft limits, the best first; macOS refuses more than its own maximum."""


def listen(path: str) -> socket.socket:
    """Listens, non-blocking, in place of whatever a daemon before left there.

    To be called under the daemon's lock. Raises UnsafePermissions where the path is taken by
    something that is no socket, StorageFailed where the disk has no room for it, or OSError.
    """
    _clear(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(path)
    except OSError as error:
        sock.close()
        refusal = refusals.of_storage(path, error)
        if refusal is None:
            raise
        raise refusal from error
    os.chmod(path, 0o600)
    sock.listen(BACKLOG)
    sock.setblocking(False)
    return sock


def _clear(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UnsafePermissions(
            f"{path} is in the way of the bus' socket ({error.strerror}); remove it"
        ) from error


def remove(path: str) -> None:
    """Removes the socket's name; under the lock."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def raise_descriptor_limit() -> int:
    """Lifts the soft limit on descriptors towards the hard one; what it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in DESCRIPTORS:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if limit <= soft:
            return soft
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            return limit
    return soft
