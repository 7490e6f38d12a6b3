"""Plain blocking connections to the server of a bus, and to one of its own."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import hiredis

from agentbus.runtime.paths import Paths

START_SECONDS: Final = 20.0


def socket_of(paths: Paths) -> str:
    """Where the server of a running bus listens."""
    sockets = Path(paths.redis_directory).glob("*.sock")
    return str(max(sockets, key=lambda found: found.stat().st_mtime))


class Redis:
    """One command at a time."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise
        self._reader = hiredis.Reader()

    def run(self, *command: bytes) -> Any:
        """The reply."""
        return self.pipeline([command])[0]

    def pipeline(self, commands: Sequence[tuple[bytes, ...]]) -> list[Any]:
        """The replies to several, written at once."""
        self._socket.sendall(b"".join([hiredis.pack_command(each) for each in commands]))
        return [self._reply() for _ in commands]

    def info(self) -> dict[str, str]:
        """What `INFO` says."""
        lines = self.run(b"INFO").decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def _reply(self) -> Any:
        while (reply := self._reader.gets()) is False:
            data = self._socket.recv(1 << 18)
            if not data:
                raise EOFError("the server hung up")
            self._reader.feed(data)
        return reply

    def close(self) -> None:
        """Hangs up."""
        self._socket.close()


@contextlib.contextmanager
def server(base: str, executable: str, *options: str) -> Iterator[tuple[str, Redis]]:
    """One that writes no snapshots; its socket, and a connection to it."""
    with tempfile.TemporaryDirectory(prefix="ab-", dir=base) as directory:
        path = os.path.join(directory, "s")
        command = [executable, "--port", "0", "--unixsocket", path, "--save", "", *options]
        process = subprocess.Popen(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        try:
            with closing(_connected(path)) as redis:
                yield path, redis
        finally:
            process.terminate()
            process.wait(START_SECONDS)


def _connected(path: str) -> Redis:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return Redis(path)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
