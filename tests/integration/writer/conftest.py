"""The writer as a process of its own, on a real file; the test is its gateway and projector."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentbus.config import Settings
from agentbus.runtime import logs
from agentbus.runtime.context import ChildContext
from agentbus.runtime.paths import Paths, locate, prepare
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
from tests.support.link_end import Peer


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
        self.control.expect(Ready)
        self.projector.expect(WriterHello)
        self.projector.send(Readiness(True, ""))
        self.gateway.send(GatewayHello(incarnation))
        welcome = self.gateway.expect(Welcome)
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
