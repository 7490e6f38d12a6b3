"""An indexer as a process of its own, beside a bus that a real writer's core fills."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentbus.config import Settings
from agentbus.indexer import main
from agentbus.model.ids import CommitId
from agentbus.runtime import logs
from agentbus.runtime.context import ChildContext
from agentbus.runtime.paths import Paths, locate, prepare
from agentbus.wire.links import (
    GATEWAY_INDEXER,
    FromChild,
    IndexerToGateway,
    IndexState,
    IndexUpTo,
    SearchAsk,
    SearchFilter,
    SearchFound,
    SearchRefused,
)
from tests.support.link_end import Peer
from tests.support.writer_world import World

BOUND = 30.0


class Process:
    """An indexer that runs; end it with `kill` or `wait`."""

    def __init__(self, paths: Paths) -> None:
        self.control = Peer(FromChild)
        self.gateway = Peer(IndexerToGateway)
        self._refs = iter(range(1, 10**6))
        self.pid: int | None = os.fork()
        if self.pid == 0:
            self._live(paths)
        for peer in (self.control, self.gateway):
            peer.theirs.close()

    def _live(self, paths: Paths) -> None:
        code = 99
        try:
            for peer in (self.control, self.gateway):
                peer.socket.close()
                peer.theirs.setblocking(False)
            settings = Settings()
            logs.configure("indexer", paths, settings)
            links = {GATEWAY_INDEXER: self.gateway.theirs}
            code = main.run(
                ChildContext("indexer", settings, "", paths, self.control.theirs, links, None)
            )
        finally:
            os._exit(code)

    def follow(self, commit_id: int) -> None:
        """The gateway has heard of a commit."""
        self.gateway.send(IndexUpTo(CommitId(commit_id)))

    def state(self, wanted: Callable[[IndexState], bool]) -> IndexState:
        found: IndexState = self.gateway.receive(
            lambda message: isinstance(message, IndexState) and wanted(message)
        )
        return found

    def ask(self, query: str, after_commit: int = 0, **more: Any) -> int:
        """Asks for a search; its ref."""
        ref, limit = next(self._refs), more.pop("limit", 100)
        order = more.pop("order", "newest")
        filters = SearchFilter(**more)
        self.gateway.send(
            SearchAsk(ref, query, filters, order, limit, None, CommitId(after_commit), 10**7)
        )
        return ref

    def answer(self, ref: int) -> SearchFound | SearchRefused:
        answer: SearchFound | SearchRefused = self.gateway.receive(
            lambda message: isinstance(message, SearchFound | SearchRefused) and message.ref == ref
        )
        return answer

    def next_answer(self) -> SearchFound | SearchRefused:
        """To whichever search."""
        answer: SearchFound | SearchRefused = self.gateway.receive(
            lambda message: isinstance(message, SearchFound | SearchRefused)
        )
        return answer

    def search(self, query: str, after_commit: int = 0, **more: Any) -> list[str]:
        """The snippets of what is found."""
        answer = self.answer(self.ask(query, after_commit, **more))
        assert isinstance(answer, SearchFound), answer
        return [hit.snippet for hit in answer.hits]

    def wait(self) -> int:
        """Until it has ended by itself; the exit code."""
        assert self.pid is not None
        _, status = os.waitpid(self.pid, 0)
        self.pid = None
        for peer in (self.control, self.gateway):
            peer.socket.close()
        return os.waitstatus_to_exitcode(status)

    def kill(self) -> None:
        """SIGKILL, and gone when this returns."""
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()


class Bus(World):
    """A writer whose sends are counted by commit."""

    def __init__(self, paths: Paths) -> None:
        super().__init__(Path(paths.data_directory))
        self._who: str | None = None

    def send(self, *contents: str, channel: str = "general") -> int:
        """One commit; its number."""
        if self._who is None:
            self._who = self.register().attachment
        numbers = [f"m{self.ref()}" for _ in contents]
        self.ask(
            *(
                self.append(self._who, number, content, channel=channel)
                for number, content in zip(numbers, contents, strict=True)
            )
        )
        return int(self.committed()[-1].commit_id)


@pytest.fixture
def paths(short_path: Path) -> Paths:
    """Directories of a bus."""
    settings = Settings(data_directory=str(short_path / "data"))
    found = locate(settings, {"AGENTBUS_RUNTIME_DIR": str(short_path / "run")})
    prepare(found)
    return found


@pytest.fixture
def bus(paths: Paths) -> Iterator[Bus]:
    with Bus(paths) as made:
        yield made


@pytest.fixture
def launch(paths: Paths) -> Iterator[Callable[[], Process]]:
    """Starts indexers that end with the test."""
    started: list[Process] = []

    def start() -> Process:
        process = Process(paths)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
