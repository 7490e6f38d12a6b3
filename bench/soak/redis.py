"""A plain blocking connection to the server of a bus."""

from __future__ import annotations

import socket
from typing import Any

import hiredis


class Redis:
    """One command at a time."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._reader = hiredis.Reader()

    def run(self, *command: bytes) -> Any:
        """The reply."""
        self._socket.sendall(hiredis.pack_command(command))
        while (reply := self._reader.gets()) is False:
            data = self._socket.recv(1 << 18)
            if not data:
                raise EOFError("the server hung up")
            self._reader.feed(data)
        return reply

    def close(self) -> None:
        """Hangs up."""
        self._socket.close()
