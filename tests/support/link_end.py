"""The test's end of a link to one process of the daemon."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

import msgspec

from agentbus.wire import framing

BOUND = 30.0


class Peer:
    """Sends and receives frames as the process' peer would."""

    def __init__(self, union: Any) -> None:
        self.socket, self.theirs = socket.socketpair()
        self.socket.settimeout(BOUND)
        self._decoder: framing.FrameDecoder[Any] = framing.FrameDecoder(union)
        self.waiting: list[Any] = []

    def send(self, *messages: msgspec.Struct) -> None:
        """Writes them."""
        self.socket.sendall(b"".join(framing.encode(message) for message in messages))

    def receive(self, wanted: Callable[[Any], bool]) -> Any:
        """The first message that is wanted; those before it are gone."""
        deadline = time.monotonic() + BOUND
        while time.monotonic() < deadline:
            while self.waiting:
                message = self.waiting.pop(0)
                if wanted(message):
                    return message
            data = self.socket.recv(1 << 18)
            assert data, "the process closed the link"
            self.waiting += self._decoder.feed(data)
        raise AssertionError("what was waited for did not come")

    def expect(self, kind: Any) -> Any:
        """The first message of a type, or of one of a union; those before it are gone."""
        return self.receive(lambda message: isinstance(message, kind))
