"""The writer as a process of its own, on a real file; the test is its gateway and projector."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentbus.config import Settings
from agentbus.runtime import logs
from agentbus.runtime.context import ChildContext
from agentbus.runtime.paths import Paths, locate, prepare
from agentbus.wire import framing
from agentbus.wire.links import (
    GATEWAY_WRITER,
    WRITER_PROJECTOR,
    FromChild,
    GatewayHello,
    Readiness,
    Ready,
    Welcome,
    WriterHello,
    WriterToGateway,
    WriterToProjector,
)
from agentbus.writer import main

BOUND = 30.0


class Peer:
    """The test's end of one of the writer's links."""

    def __init__(self, union: Any) -> None:
        self.socket, self.theirs = socket.socketpair()
        self.socket.settimeout(BOUND)
        self._decoder: framing.FrameDecoder[Any] = framing.FrameDecoder(union)
        self._waiting: list[Any] = []

    def send(self, *messages: msgspec.Struct) -> None:
        """Writes them."""
        self.socket.sendall(b"".join(framing.encode(message) for message in messages))

    def receive(self, kind: type[Any]) -> Any:
        """The next message of a kind; those before it are gone."""
        deadline = time.monotonic() + BOUND
        while time.monotonic() < deadline:
            while self._waiting:
                message = self._waiting.pop(0)
                if isinstance(message, kind):
                    return message
            data = self.socket.recv(1 << 18)
            assert data, "the writer closed the link"
            self._waiting += self._decoder.feed(data)
        raise AssertionError(f"no {kind.__name__} came")


class Process:
    """A writer that runs; end it with `kill` or `wait`."""

    def __init__(self, paths: Paths, settings: Settings) -> None:
        self.control = Peer(FromChild)
        self.gateway = Peer(WriterToGateway)
        self.projector = Peer(WriterToProjector)
        self._peers = (self.control, self.gateway, self.projector)
        self.pid: int | None = os.fork()
        if self.pid == 0:
            self._live(paths, settings)
        for peer in self._peers:
            peer.theirs.close()

    def _live(self, paths: Paths, settings: Settings) -> None:
        code = 99
        try:
            for peer in self._peers:
                peer.socket.close()
                peer.theirs.setblocking(False)
            logs.configure("writer", paths, settings)
            links = {GATEWAY_WRITER: self.gateway.theirs, WRITER_PROJECTOR: self.projector.theirs}
            code = main.run(
                ChildContext("writer", settings, "", paths, self.control.theirs, links, None)
            )
        finally:
            os._exit(code)

    def greet(self, incarnation: int = 0) -> Welcome:
        """Gateway and projector come; the projector takes messages."""
        self.control.receive(Ready)
        self.projector.receive(WriterHello)
        self.projector.send(Readiness(True, ""))
        self.gateway.send(GatewayHello(incarnation))
        welcome = self.gateway.receive(Welcome)
        assert isinstance(welcome, Welcome)
        return welcome

    def wait(self) -> int:
        """Until it has ended by itself; the exit code."""
        assert self.pid is not None
        _, status = os.waitpid(self.pid, 0)
        self.pid = None
        for peer in self._peers:
            peer.socket.close()
        return os.waitstatus_to_exitcode(status)

    def kill(self) -> None:
        """SIGKILL, and gone when this returns."""
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()


@pytest.fixture
def paths(short_path: Path) -> Paths:
    """Directories of a bus."""
    settings = Settings(data_directory=str(short_path / "data"))
    found = locate(settings, {"AGENTBUS_RUNTIME_DIR": str(short_path / "run")})
    prepare(found)
    return found


@pytest.fixture
def launch(paths: Paths) -> Iterator[Callable[[], Process]]:
    """Starts writers that end with the test."""
    started: list[Process] = []

    def start() -> Process:
        process = Process(paths, Settings())
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
