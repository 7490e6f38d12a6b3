"""Whom we talk to: nobody but a daemon of our own user is told anything."""

from __future__ import annotations

import os
import socket

from agentbus.errors import UnsafePermissions
from agentbus.runtime import platform


def require_own(sock: socket.socket, path: str) -> None:
    """Raises UnsafePermissions where another user listens at `path`, to which `sock` is connected.

    Whoever can make the socket's directory before us (it may be under /tmp) would be told all.
    Raises OSError where nobody is there any more.
    """
    uid = platform.peer_uid(sock)
    if uid != os.getuid():
        raise UnsafePermissions(
            f"{path} is served by user id {uid}, not by you ({os.getuid()}); remove what is there, "
            "or set AGENTBUS_RUNTIME_DIR to a directory of your own"
        )
