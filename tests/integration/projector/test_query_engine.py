"""The index within a server that has a query engine, kept by the projector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentbus.search.query_engine import INDEX
from agentbus.wire.links import (
    Applied,
    Evicted,
    Measured,
    Projection,
    RedisDown,
    RedisStatus,
    RedisStatusAsk,
    SearchBackend,
    Stop,
)

Launch = Callable[[], Any]


def is_searchable(message: Any) -> bool:
    return isinstance(message, Projection) and message.ready and message.search == "query_engine"


def ready(launch: Launch, server: Any, written: Any) -> Any:
    process = launch()
    process.control.send(server.up)
    process.writer.send(written.hello)
    process.gateway.receive(is_searchable)
    written.told()
    return process


def tell(process: Any, written: Any) -> None:
    told = written.told()
    process.writer.send(*told)
    last = told[-1].commit_id
    process.writer.receive(
        lambda message: isinstance(message, Applied) and message.commit_id == last
    )


def found(server: Any, word: str) -> set[bytes]:
    """Keys of the documents with a word."""
    query = b"@t:(%b)" % word.encode()
    (reply,) = server.run((b"FT.SEARCH", INDEX, query, b"NOCONTENT", b"LIMIT", b"0", b"10000"))
    return set(reply[1:])


def test_documents_follow_their_messages(launch: Launch, query_engine: Any, written: Any) -> None:
    written.send("before the start")
    process = ready(launch, query_engine, written)
    backend = process.control.expect(SearchBackend)
    assert backend.indexer is False
    process.gateway.send(RedisStatusAsk(1))
    status = process.gateway.expect(RedisStatus)
    assert status.search == "query_engine"
    written.send("after the start")
    first = written.send("start of a memory", "memory").memory_id
    second = written.send("start of another", "memory").memory_id
    tell(process, written)
    assert found(query_engine, "start") == {b"d:1:1", b"d:1:2", b"d:2:1", b"d:2:2"}
    written.edit(first, "edited")
    written.delete(second)
    tell(process, written)
    assert found(query_engine, "start") == {b"d:1:1", b"d:1:2"}
    assert found(query_engine, "edited") == {b"d:2:1"}


def test_documents_go_when_their_messages_are_evicted(
    launch: Launch, query_engine: Any, written: Any
) -> None:
    process = ready(launch, query_engine, written)
    for number in range(1200):
        written.send(f"word {number}")
    tell(process, written)
    assert len(found(query_engine, "word")) == 1200
    process.writer.send(Evicted(1, [written.evict(1101)]))
    process.writer.expect(Measured)
    assert found(query_engine, "word") == {b"d:1:%d" % seq for seq in range(1101, 1201)}
    assert query_engine.run((b"XLEN", b"s:1"))[0] == 100


def test_the_index_comes_back_with_a_snapshot(
    launch: Launch, query_engine: Any, written: Any
) -> None:
    process = ready(launch, query_engine, written)
    for number in range(300):
        written.send(f"word {number}")
    tell(process, written)
    process.control.send(Stop(snapshot=True))
    assert process.wait() == 0
    written.send("word missed")
    written.evict(11)
    query_engine.restart()
    process = launch()
    process.control.send(query_engine.up)
    process.writer.send(written.hello)
    assert process.gateway.receive(is_searchable).rebuilds == 0
    assert found(query_engine, "word") == {b"d:1:%d" % seq for seq in range(11, 302)}


def test_a_flushed_index_is_made_again(launch: Launch, query_engine: Any, written: Any) -> None:
    process = ready(launch, query_engine, written)
    written.send("a word")
    tell(process, written)
    query_engine.run((b"FLUSHALL",))
    process.gateway.receive(lambda message: isinstance(message, Projection) and not message.ready)
    process.gateway.receive(is_searchable)
    assert found(query_engine, "word") == {b"d:1:1"}


def test_another_server_without_a_query_engine_asks_for_the_indexer(
    launch: Launch, query_engine: Any, valkey: Any, written: Any
) -> None:
    process = ready(launch, query_engine, written)
    process.control.send(RedisDown("killed"), valkey.up)
    backends = [process.control.expect(SearchBackend).indexer for _ in range(2)]
    assert backends == [False, True]
    process.gateway.receive(
        lambda message: (
            isinstance(message, Projection) and message.ready and message.search == "fts5"
        )
    )
    assert valkey.run((b"KEYS", b"d:*")) == [[]]


def test_a_write_is_searchable_as_soon_as_it_is_applied(
    launch: Launch, query_engine: Any, written: Any
) -> None:
    process = ready(launch, query_engine, written)
    for number in range(50):
        written.send(f"token{number}")
        tell(process, written)
        assert len(found(query_engine, f"token{number}")) == 1
