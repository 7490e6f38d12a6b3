"""One daemon per runtime directory and per data directory, by `flock`.

A lock belongs to an open file, not to a process: children inherit it on purpose, so that it is
free only when the last of them has gone. The file is never removed by us.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import time
from typing import Final

import msgspec

from agentbus import __version__
from agentbus.errors import (
    AgentbusError,
    ConfigMismatch,
    Unavailable,
    UnsafePermissions,
)
from agentbus.runtime import refusals
from agentbus.runtime.clock import SystemClock
from agentbus.runtime.owners import Owner, read
from agentbus.runtime.paths import Paths
from agentbus.runtime.platform import process_state
from agentbus.wire import rpc

OWNER_SECONDS: Final = 45.0
"""How long a second daemon waits for the first to answer or to end: longer than an orderly stop
(5 s for each process to go, 30 s for the snapshot), and shorter than whoever started it waits for
it (`client.start.READY_SECONDS`), so that the reason is still heard."""

ANSWER_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 0.05

_NO_FILE: Final = frozenset({errno.ELOOP, errno.EISDIR, errno.ENXIO})
"""What opening a link, a directory or a socket meets."""


class Lock:
    """A held lock; it is free again when all copies of `fd` are closed."""

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd

    def write(self, owner: Owner) -> None:
        """Says whose it is. Raises StorageFailed, or OSError."""
        content = msgspec.json.encode(owner) + b"\n"
        try:
            os.pwrite(self.fd, content, 0)
            os.ftruncate(self.fd, len(content))
        except OSError as error:
            refusal = refusals.of_storage(self.path, error)
            if refusal is None:
                raise
            raise refusal from error

    def close(self) -> None:
        """Gives this process' copy up."""
        os.close(self.fd)


def take(path: str) -> Lock | None:
    """The lock on a file, which is made where there is none; None where another has it.

    Raises UnsafePermissions or StorageFailed where the file cannot be opened.
    """
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            fd = os.open(path, flags, 0o600)
        except OSError as error:
            raise _unopened(path, error) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        if _same_file(fd, path):
            return Lock(path, fd)
        os.close(fd)  # somebody removed it between opening and locking


def _unopened(path: str, error: OSError) -> AgentbusError:
    refusal = refusals.of_storage(path, error)
    if refusal is not None:
        return refusal
    advice = "; remove it" if error.errno in _NO_FILE else ""
    return UnsafePermissions(f"{path} cannot be opened ({error.strerror}){advice}")


def _same_file(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def take_daemon(paths: Paths) -> Lock | Owner:
    """The runtime directory's lock, or the daemon that holds it and serves.

    Waits while the holder starts or stops. Raises Unavailable where it does neither.
    """
    found = _take_or_follow(paths.lock)
    if found is not None:
        return found
    raise Unavailable(
        f"{_who(read(paths.lock))} holds {paths.lock} but does not answer; end it and start again"
    )


def take_data(paths: Paths) -> Lock | Owner:
    """The data directory's lock, or the daemon that holds it, where that serves here too: its
    runtime directory was removed, and it has come back to it.

    Raises ConfigMismatch where a daemon of another runtime directory has it.
    """
    found = _take_or_follow(paths.data_lock)
    if isinstance(found, Lock):
        return found
    if found is not None and found.runtime_directory == paths.runtime_directory:
        return found
    raise ConfigMismatch(
        f"{paths.data_directory} is in use by another daemon ({_who(read(paths.data_lock))}); stop "
        "that one, or set another data_directory"
    )


def _take_or_follow(path: str) -> Lock | Owner | None:
    """The lock, or its owner when that serves, or None when neither comes about in time."""
    until = _monotonic() + OWNER_SECONDS
    while _monotonic() < until:
        lock = take(path)
        if lock is not None:
            return lock
        owner = read(path)
        if owner is not None and process_state(owner.pid) != "gone" and answers(owner.socket):
            return owner
        time.sleep(RETRY_SECONDS)
    return None


def _who(owner: Owner | None) -> str:
    return f"process {owner.pid} of {owner.runtime_directory}" if owner else "a process"


def answers(path: str) -> bool:
    """Whether a daemon that is not about to end answers on a socket."""
    params = rpc.HelloParams(protocol=rpc.PROTOCOL, version=__version__)
    hello = {"jsonrpc": "2.0", "id": 1, "method": "hello", "params": params}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(ANSWER_SECONDS)
        try:
            sock.connect(path)
            sock.sendall(msgspec.json.encode(hello) + b"\n")
            line = sock.makefile("rb").readline(rpc.MAX_LINE)
        except OSError:
            return False
    reply: rpc.Reply | None = None
    with contextlib.suppress(msgspec.DecodeError):
        reply = msgspec.json.decode(line, type=rpc.Reply)
    if reply is None:
        return False
    return reply.error is not None or b'"stopping"' not in bytes(reply.result)


def _monotonic() -> float:
    return SystemClock().now().monotonic
