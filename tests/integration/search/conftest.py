"""One bus, and the two ways of searching it: who tests one tests both."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import pytest

from agentbus.errors import AgentbusError
from agentbus.indexer.core import Core
from agentbus.indexer.keeper import State
from agentbus.indexer.search import Searcher
from agentbus.mirror import keys
from agentbus.mirror.read import Envelopes
from agentbus.mirror.resp import Refused
from agentbus.model.ids import AttachmentId, ChannelId, CommitId, Seq
from agentbus.model.ports import Instant
from agentbus.search.document import document
from agentbus.search.fts5.write import IndexWriter
from agentbus.search.query_engine import write
from agentbus.search.query_engine.conversation import Conversation
from agentbus.sqlite import open_writer
from agentbus.store import schema
from agentbus.store.lookup import Lookup
from agentbus.store.read import Reader
from agentbus.wire.error_codes import from_failure
from agentbus.wire.events import TurnEnded
from agentbus.wire.links import (
    ChannelCreate,
    MemoryDelete,
    MemoryEdit,
    Mutated,
    RowInserted,
    SearchAsk,
    SearchFilter,
    SearchFound,
    SearchHit,
    SearchRefused,
)
from tests.integration.conftest import QueryEngine
from tests.support.writer_world import World


class Bus:
    """A bus that is written by the real writer; what that does by age is done to its file."""

    def __init__(self, directory: Path) -> None:
        self.world = World(directory)
        self.path = self.world.path
        self._attachments: dict[str, str] = {}
        self._numbers = iter(range(1, 1_000_000))

    def close(self) -> None:
        self.world.store.close()

    def channel(self, name: str, kind: str = "ordinary") -> None:
        self.world.ask(ChannelCreate(self.world.ref(), self._attached("Sam"), name, kind))

    def _attached(self, agent: str) -> str:
        if agent not in self._attachments:
            registered = self.world.register(f"native-{agent}", agent=agent)
            self._attachments[agent] = registered.attachment
        return self._attachments[agent]

    def send(self, content: str, channel: str = "general", agent: str = "Sam", **more: Any) -> str:
        """The id of the message; a memory's is that of its creation."""
        message_id = more.pop("message_id", None) or f"m{next(self._numbers)}"
        self.world.time += 1
        append = self.world.append(
            self._attached(agent), message_id, content, channel=channel, **more
        )
        (answer,) = self.world.ask(append)
        assert answer.message_id == message_id, answer
        return message_id

    def send_many(self, contents: list[str], **more: Any) -> list[str]:
        """In one commit."""
        ids = [f"m{next(self._numbers)}" for _ in contents]
        attachment = self._attached(more.pop("agent", "Sam"))
        self.world.time += 1
        appends = [
            self.world.append(attachment, message_id, content, **more)
            for message_id, content in zip(ids, contents, strict=True)
        ]
        self.world.ask(*appends)
        return ids

    def sent_at(self, message_id: str) -> str:
        (row,) = self.world.rows("SELECT envelope FROM messages WHERE message_id = ?", message_id)
        return str(json.loads(row[0])["sent_at"])

    def _memory(self, message_id: str) -> str:
        (row,) = self.world.rows("SELECT memory_id FROM messages WHERE message_id = ?", message_id)
        return str(row[0])

    def delete(self, message_id: str) -> None:
        """A memory is deleted."""
        operation = f"m{next(self._numbers)}"
        memory, attachment = self._memory(message_id), AttachmentId(self._attached("Sam"))
        (answer,) = self.world.ask(
            MemoryDelete(self.world.ref(), attachment, memory, operation, b"")
        )
        assert isinstance(answer, Mutated), answer

    def edit(self, message_id: str, content: str) -> str:
        """A memory is edited; the id of the new revision."""
        operation = f"m{next(self._numbers)}"
        memory, attachment = self._memory(message_id), AttachmentId(self._attached("Sam"))
        (answer,) = self.world.ask(
            MemoryEdit(self.world.ref(), attachment, memory, operation, b"", content)
        )
        assert isinstance(answer, Mutated), answer
        return operation

    def evict(self, *message_ids: str) -> None:
        """Messages are deleted by retention."""
        connection = open_writer(
            self.path, synchronous="normal", application_id=schema.APPLICATION_ID
        )
        with closing(connection), connection.transaction():
            for message_id in message_ids:
                connection.execute("DELETE FROM messages WHERE message_id = ?", (message_id,))


class Found:
    """A page."""

    def __init__(self, hits: list[SearchHit], cursor: str | None) -> None:
        self.messages = [json.loads(hit.envelope) for hit in hits]
        self.ids = [message["message_id"] for message in self.messages]
        self.contents = [message["content"] for message in self.messages]
        self.snippets = [hit.snippet for hit in hits]
        self.cursor = cursor


class Backend(Protocol):
    """An index that follows a bus."""

    def follow(self) -> None:
        """Takes what is new on the bus."""
        ...

    def find(self, ask: SearchAsk) -> tuple[list[SearchHit], str | None]:
        """Raises what is refused."""
        ...

    def close(self) -> None: ...


def answered(answer: SearchFound | SearchRefused) -> tuple[list[SearchHit], str | None]:
    if isinstance(answer, SearchRefused):
        raise from_failure(answer.failure)
    return answer.hits, answer.next_cursor


class Fts5:
    """The indexer, but for its process."""

    def __init__(self, bus: Bus, directory: Path) -> None:
        index = str(directory / "search.sqlite3")
        self.index = IndexWriter(index)
        self._source = Reader(bus.path)
        self._remains = Lookup(bus.path)
        self.core = Core(self._source, self._remains, self.index)
        self._searcher = Searcher(index, bus.path)
        self.time = 0.0

    def follow(self) -> None:
        newest = self._source.head().commit_id
        while self.core.state is not State.READY or self.core.applied < newest:
            self.time += 20
            self.core.handle(TurnEnded(), Instant(self.time, self.time))

    def find(self, ask: SearchAsk) -> tuple[list[SearchHit], str | None]:
        return answered(self._searcher.run(1, ask, lambda: False).answer)

    def close(self) -> None:
        for part in (self._searcher, self.index, self._source, self._remains):
            part.close()


class InRedis:
    """The query engine, written as the projector would."""

    def __init__(self, bus: Bus, server: QueryEngine) -> None:
        self._server = server
        self._source = Reader(bus.path)
        self._lookup = Lookup(bus.path)
        self._bus = bus
        self._applied = CommitId(0)
        self._places: dict[tuple[ChannelId, Seq], tuple[int, str | None]] = {}
        server.run((b"FLUSHALL",), *write.OPTIONS, write.CREATE)

    def follow(self) -> None:
        while chunk := self._source.rows_after(self._applied, 1000, 10**8):
            self._applied = chunk.commit_id
            for row in chunk.rows:
                self._put(row)
        rows = self._bus.world.rows("SELECT id FROM messages WHERE NOT tombstone")
        live = {number for (number,) in rows}
        for place, (number, memory_id) in list(self._places.items()):
            if number not in live:
                self._remove(place, memory_id)
                del self._places[place]

    def _put(self, row: RowInserted) -> None:
        place, memory_id = (row.channel_id, row.seq), row.memory_id
        self._places[place] = (row.id, memory_id)
        put = write.put(document(row), memory_id)
        if memory_id is None:
            stream, entry = keys.stream(row.channel_id), keys.entry_id(row.seq)
            kept = (b"XADD", stream, entry, b"e", row.envelope, b"s", b"1")
        else:
            kept = (b"HSET", keys.contents(row.channel_id), memory_id.encode(), row.envelope)
        replies = self._server.run(put, kept)
        assert not any(isinstance(reply, Refused) for reply in replies), replies

    def _remove(self, place: tuple[ChannelId, Seq], memory_id: str | None) -> None:
        channel, seq = place
        if memory_id is None:
            gone = (b"XDEL", keys.stream(channel), keys.entry_id(seq))
        else:
            gone = (b"HDEL", keys.contents(channel), memory_id.encode())
        self._server.run(write.remove(place), gone)

    def find(self, ask: SearchAsk) -> tuple[list[SearchHit], str | None]:
        instance = self._source.head().instance
        conversation = Conversation(ask, self._lookup.channels(), instance, Envelopes())
        while not conversation.done:
            conversation.take(self._server.run(*conversation.commands()))
        return answered(conversation.answer)

    def close(self) -> None:
        self._source.close()
        self._lookup.close()


class Engine:
    """A bus, searched through one backend."""

    def __init__(self, bus: Bus, backend: Backend) -> None:
        self.bus = bus
        self.backend = backend

    def search(self, query: str = "", **more: Any) -> Found:
        """With what the bus has now."""
        self.backend.follow()
        return self.find(query, **more)

    def find(self, query: str = "", **more: Any) -> Found:
        """With what the index has."""
        limit, max_bytes = more.pop("limit", 100), more.pop("max_bytes", 10**7)
        order, cursor = more.pop("order", "newest"), more.pop("cursor", None)
        ask = SearchAsk(
            1, query, SearchFilter(**more), order, limit, cursor, CommitId(0), max_bytes
        )
        return Found(*self.backend.find(ask))

    def pages(self, query: str = "", **more: Any) -> list[list[str]]:
        """The ids of all pages."""
        found = self.search(query, **more)
        pages = [found.ids]
        while found.cursor:
            found = self.find(query, cursor=found.cursor, **more)
            pages.append(found.ids)
        return pages

    def refusal(self, query: str = "", **more: Any) -> AgentbusError:
        with pytest.raises(AgentbusError) as caught:
            self.search(query, **more)
        return caught.value


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Callable[[], QueryEngine]]:
    """One server for all tests, started by the first that asks."""
    servers: list[QueryEngine] = []
    directory = Path(tempfile.mkdtemp(prefix="ab-", dir="/tmp"))

    def server() -> QueryEngine:
        if not servers:
            made = QueryEngine(directory)
            made.start()
            servers.append(made)
        return servers[0]

    yield server
    for each in servers:
        each.kill()
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with closing(Bus(tmp_path)) as made:
        yield made


@pytest.fixture(params=["fts5", "query engine"])
def engine(
    request: pytest.FixtureRequest,
    bus: Bus,
    tmp_path: Path,
    redis_server: Callable[[], QueryEngine],
) -> Iterator[Engine]:
    backend: Fts5 | InRedis = (
        Fts5(bus, tmp_path) if request.param == "fts5" else InRedis(bus, redis_server())
    )
    with closing(backend):
        yield Engine(bus, backend)
