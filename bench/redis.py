"""A plain blocking connection to the server of a bus."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hiredis

from agentbus.runtime.paths import Paths


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
