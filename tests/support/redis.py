"""Asking a Redis directly, past whatever is tested."""

from __future__ import annotations

import glob
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from agentbus.mirror.resp import Command, Reply, ReplyDecoder, pack
from agentbus.runtime.paths import Paths

BOUND = 20.0


def connect(path: str) -> socket.socket:
    """A blocking connection, to be closed by the caller."""
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.settimeout(BOUND)
        sock.connect(path)
    except BaseException:
        sock.close()
        raise
    return sock


@contextmanager
def of_bus(paths: Paths) -> Iterator[socket.socket]:
    """A connection to the Redis of a bus that runs."""
    (path,) = glob.glob(os.path.join(paths.redis_directory, "redis-*.sock"))
    with connect(path) as sock:
        yield sock


def ask(sock: socket.socket, *commands: Command) -> list[Reply]:
    """The replies to these commands."""
    sock.sendall(pack(commands))
    decoder = ReplyDecoder()
    replies: list[Reply] = []
    while len(replies) < len(commands):
        data = sock.recv(65536)
        if not data:
            raise ConnectionResetError
        replies += decoder.feed(data)
    return replies
