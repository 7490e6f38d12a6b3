"""The projector as a process of its own, between a real database, a real Valkey and the test."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentbus import sqlite
from agentbus.config import Settings
from agentbus.mirror import keys
from agentbus.model.ids import ChannelId, CommitId, Seq, SessionId
from agentbus.projector import main
from agentbus.runtime import logs
from agentbus.runtime.context import ChildContext
from agentbus.runtime.paths import Paths, locate, prepare
from agentbus.store import migrations, schema
from agentbus.wire.links import (
    PROJECTOR_GATEWAY,
    WRITER_PROJECTOR,
    Boundary,
    Committed,
    FromChild,
    MemoryDelete,
    MemoryEdit,
    Mutated,
    ProjectorToGateway,
    ProjectorToWriter,
    RowInserted,
    WriterHello,
)
from tests.support.link_end import Peer
from tests.support.writer_world import World

BOUND = 30.0
CHANNELS = 3


class Bus:
    """A database as the writer makes it, with messages as far as the projector looks at them."""

    def __init__(self, path: str, instance: str = "bus-1") -> None:
        self.instance = instance
        self._connection = sqlite.open_writer(
            path, synchronous="normal", application_id=schema.APPLICATION_ID
        )
        self.newest = CommitId(0)
        self._last_id = 0
        self._tops = dict.fromkeys(range(1, CHANNELS + 1), 0)
        with self._connection.transaction():
            migrations.apply_pending(self._connection)
            execute = self._connection.execute
            execute("INSERT INTO meta (id, instance, created_at) VALUES (1, ?, 0)", (instance,))
            execute("INSERT INTO agents (id, name, created_at) VALUES (1, 'Sam', 0)")
            execute(
                "INSERT INTO sessions (id, agent_id, application, native, display_name, "
                "attached_at, last_seen, created_at) VALUES (7, 1, 'test', 'n', 'Sam', 0, 0, 0)"
            )
            for channel in self._tops:
                execute(
                    "INSERT INTO channels (id, name, kind, created_at) "
                    "VALUES (?, ?, 'ordinary', 0)",
                    (channel, f"c{channel}"),
                )

    def commit(self, *channels: int, content: str = "x") -> Committed:
        """One message in each of these channels; what the writer would say of it."""
        rows = [self._row(channel, content) for channel in channels]
        previous, self.newest = self.newest, CommitId(self.newest + 1)
        with self._connection.transaction():
            for row in rows:
                self._last_id += 1
                self._connection.execute(
                    "INSERT INTO messages (id, channel_id, seq, session_id, commit_id, sent_at, "
                    "message_id, envelope) VALUES (?, ?, ?, ?, ?, 0, ?, ?)",
                    (
                        self._last_id,
                        row.channel_id,
                        row.seq,
                        row.session_id,
                        self.newest,
                        f"m{self._last_id}",
                        row.envelope,
                    ),
                )
            self._connection.execute("UPDATE meta SET commit_id = ?", (self.newest,))
        return Committed(previous, self.newest, rows)

    def _row(self, channel: int, content: str) -> RowInserted:
        self._tops[channel] += 1
        envelope = msgspec.json.encode(
            {"content": content, "sent_at": "2026-11-30T16:40:27.123Z", "seq": self._tops[channel]}
        )
        return RowInserted(ChannelId(channel), Seq(self._tops[channel]), SessionId(7), envelope)

    def streams(self) -> dict[int, list[tuple[bytes, list[bytes]]]]:
        """What Redis must hold of each channel."""
        found: dict[int, list[tuple[bytes, list[bytes]]]] = {channel: [] for channel in self._tops}
        for channel, seq, session, envelope in self._connection.execute(
            "SELECT channel_id, seq, session_id, envelope FROM messages ORDER BY id"
        ):
            fields = [keys.ENVELOPE, envelope, keys.SESSION, b"%d" % session]
            found[channel].append((b"%d-0" % seq, fields))
        return found

    def close(self) -> None:
        """Gives the file up."""
        self._connection.close()


class Process:
    """A projector that runs; end it with `kill` or `wait`."""

    def __init__(self, paths: Paths) -> None:
        self.control = Peer(FromChild)
        self.writer = Peer(ProjectorToWriter)
        self.gateway = Peer(ProjectorToGateway)
        self._peers = (self.control, self.writer, self.gateway)
        self.pid: int | None = os.fork()
        if self.pid == 0:
            self._live(paths)
        for peer in self._peers:
            peer.theirs.close()

    def _live(self, paths: Paths) -> None:
        code = 99
        try:
            for peer in self._peers:
                peer.socket.close()
                peer.theirs.setblocking(False)
            settings = Settings()
            logs.configure("projector", paths, settings)
            links = {WRITER_PROJECTOR: self.writer.theirs, PROJECTOR_GATEWAY: self.gateway.theirs}
            context = ChildContext(
                "projector", settings, "", paths, self.control.theirs, links, None
            )
            code = main.run(context)
        finally:
            os._exit(code)

    def greet(self, bus: Bus) -> None:
        """The writer comes."""
        self.writer.send(WriterHello(bus.instance, bus.newest))

    def wait(self) -> int:
        """Until it has ended by itself; the exit code."""
        assert self.pid is not None
        _, status = os.waitpid(self.pid, 0)
        self.pid = None
        self._close()
        return os.waitstatus_to_exitcode(status)

    def kill(self) -> None:
        """SIGKILL, and gone when this returns."""
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()

    def _close(self) -> None:
        for peer in self._peers:
            peer.socket.close()


@pytest.fixture
def paths(short_path: Path) -> Paths:
    """Directories of a bus."""
    settings = Settings(data_directory=str(short_path / "data"))
    found = locate(settings, {"AGENTBUS_RUNTIME_DIR": str(short_path / "run")})
    prepare(found)
    return found


@pytest.fixture
def bus(paths: Paths) -> Iterator[Bus]:
    """A database that is there."""
    made = Bus(paths.database)
    yield made
    made.close()


@pytest.fixture
def launch(paths: Paths) -> Iterator[Callable[[], Process]]:
    """Starts projectors that end with the test."""
    started: list[Process] = []

    def start() -> Process:
        process = Process(paths)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()


class Written:
    """A database as the writer's core makes it; what it tells goes to a projector."""

    def __init__(self, path: str) -> None:
        directory = Path(path).parent
        self.world = World(directory)
        assert self.world.path == path
        self._attachment = self.world.register().attachment

    @property
    def hello(self) -> WriterHello:
        """What the writer says first."""
        ((instance, commit_id),) = self.world.rows("SELECT instance, commit_id FROM meta")
        return WriterHello(instance, CommitId(commit_id))

    def send(self, content: str, channel: str = "general") -> Any:
        """The answer to a send, which on a memory channel creates a memory."""
        name = f"m{self.world.ref()}"
        append = self.world.append(self._attachment, name, content, channel=channel)
        (answer,) = self.world.ask(append)
        return answer

    def edit(self, memory_id: str, content: str) -> None:
        """The memory has another content."""
        asked = (self.world.ref(), self._attachment, memory_id, f"m{self.world.ref()}", b"")
        (answer,) = self.world.ask(MemoryEdit(*asked, content))
        assert isinstance(answer, Mutated), answer

    def delete(self, memory_id: str) -> None:
        """The memory is gone."""
        asked = (self.world.ref(), self._attachment, memory_id, f"m{self.world.ref()}", b"")
        (answer,) = self.world.ask(MemoryDelete(*asked))
        assert isinstance(answer, Mutated), answer

    def evict(self, oldest: int) -> Boundary:
        """The messages of `general` before this one are gone."""
        connection = sqlite.open_writer(
            self.world.path, synchronous="normal", application_id=schema.APPLICATION_ID
        )
        with closing(connection), connection.transaction():
            statement = "DELETE FROM messages WHERE channel_id = 1 AND seq < ?"
            connection.execute(statement, (oldest,))
        return Boundary(ChannelId(1), Seq(oldest))

    def told(self) -> list[Committed]:
        """What the writer has told since the last time."""
        return self.world.committed()

    def contents(self) -> dict[tuple[int, int], bytes]:
        """What Redis must hold: envelopes by channel and position."""
        found = self.world.rows(
            "SELECT channel_id, seq, envelope FROM messages WHERE tombstone = 0"
        )
        return {(channel, seq): envelope for channel, seq, envelope in found}


@pytest.fixture
def written(paths: Paths) -> Iterator[Written]:
    """A database of the writer's own making."""
    made = Written(paths.database)
    yield made
    made.world.store.close()
