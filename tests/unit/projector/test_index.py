"""The index within the server: made where there can be one, told when it can be asked."""

from __future__ import annotations

import msgspec
import pytest

from agentbus.mirror import keys
from agentbus.mirror.resp import Refused
from agentbus.projector.trimming import DOCUMENTS
from agentbus.search.query_engine import write
from agentbus.wire.events import Opened
from agentbus.wire.links import (
    CONTROL,
    PROJECTOR_GATEWAY,
    WRITER_PROJECTOR,
    Measured,
    Projection,
    RedisDown,
    SearchBackend,
    Trimmed,
)
from tests.support.memory_source import MemorySource
from tests.support.model_redis import ModelRedis
from tests.support.projector_world import World


def engine() -> ModelRedis:
    redis = ModelRedis()
    redis.query_engine = True
    return redis


def filled() -> MemorySource:
    source = MemorySource()
    for _ in range(3):
        source.commit(1, 50)
    return source


def backends(world: World) -> list[bool]:
    return [backend.indexer for backend in world.told(SearchBackend)]


def documents(redis: ModelRedis) -> set[bytes]:
    return {key for key in redis.hashes if key.startswith(b"d:")}


# ---- which index


def test_a_server_without_a_query_engine_asks_for_the_indexer() -> None:
    world = World(filled()).start()
    assert backends(world) == [True]
    assert world.projection.search == "fts5"
    assert documents(world.redis) == set()


def test_a_server_with_one_is_searched_itself() -> None:
    world = World(filled(), engine()).start()
    assert backends(world) == [False]
    assert (world.projection.ready, world.projection.search) == (True, "query_engine")
    assert world.redis.has_index
    assert world.is_mirrored()


def test_a_change_of_servers_is_a_change_of_indexes() -> None:
    world = World(filled(), engine()).start()
    world.cut()
    world.receive(CONTROL, RedisDown("killed"))
    world.redis = ModelRedis(pid=4712)
    world.redis_up()
    world.settle()
    assert backends(world) == [False, True]
    assert (world.projection.ready, world.projection.search) == (True, "fts5")
    assert world.is_mirrored()


def test_contents_without_documents_are_rebuilt_for_a_query_engine() -> None:
    first = World(filled()).start()
    first.redis.query_engine = True
    second = World(first.source, first.redis).start()
    assert second.projection.rebuilds == 1
    assert second.is_mirrored()


def test_documents_of_another_version_are_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    first = World(filled(), engine()).start()
    monkeypatch.setattr(write, "VERSION", "another")
    second = World(first.source, first.redis).start()
    assert second.projection.rebuilds == 1
    mark = first.redis.hashes[keys.META][keys.SCHEMA]
    assert mark.endswith(b"+another")


# ---- when it can be asked


def test_an_index_that_is_being_made_is_not_said_to_be_there() -> None:
    redis = engine()
    redis.indexing = True
    world = World(filled(), redis).start()
    assert (world.projection.ready, world.projection.search) == (True, "")
    world.pass_time(10)
    assert world.projection.search == ""
    redis.indexing = False
    world.pass_time(1)
    assert (world.projection.ready, world.projection.search) == (True, "query_engine")


def test_an_index_that_a_snapshot_brings_back_is_kept() -> None:
    world = World(filled(), engine()).start()
    world.redis.run((b"SAVE",))
    world.cut()
    world.redis.restart(pid=4712)
    world.redis_up()
    world.settle()
    assert world.projection.rebuilds == 1
    assert world.projection.search == "query_engine"


def test_an_index_that_is_gone_is_made_again() -> None:
    world = World(filled(), engine()).start()
    world.redis.run((b"FLUSHALL",))
    world.pass_time(3)
    assert world.redis.has_index
    assert world.projection.search == "query_engine"
    assert [told.search for told in world.told(Projection)][-3:].count("") > 0
    assert world.is_mirrored()


def test_an_index_that_is_refused_is_noted_once_and_tried_again() -> None:
    redis = engine()
    redis.refusals[b"FT.CREATE"] = [Refused("ERR no")] * 3
    world = World(filled(), redis).start()
    assert (world.projection.ready, world.projection.search) == (True, "")
    world.pass_time(5)
    assert world.projection.search == "query_engine"
    assert [note.action for note in world.notes].count("index_refused") == 1


# ---- documents


def test_documents_follow_memories() -> None:
    world = World(filled(), engine()).start()
    before = world.redis.hashes[b"d:50:1"][b"t"]
    world.receive(WRITER_PROJECTOR, world.source.edit("memory-1", "wisdom"))
    world.receive(WRITER_PROJECTOR, world.source.delete("memory-2"))
    world.settle()
    assert world.is_mirrored()
    assert b"d:50:2" not in world.redis.hashes
    after = world.redis.hashes[b"d:50:1"]
    assert b"wisdom" in after[b"t"]
    assert b"wisdom" not in before
    assert after[b"m"] == b"memory-1"


def test_documents_go_with_what_is_evicted_piece_by_piece() -> None:
    source = MemorySource()
    count = 2 * DOCUMENTS + 10
    for _ in range(count // 10 + 1):
        source.commit(*[1] * 10)
    world = World(source, engine()).start()
    world.evict(world.source.evict(1, count), world.source.evict(2, 1), round_number=4)
    world.settle()
    assert world.is_mirrored()
    assert len(world.told(Trimmed)) == 3
    assert [(each.round, each.with_index) for each in world.told(Measured)] == [(4, True)]


def test_catching_up_removes_documents_of_what_was_evicted() -> None:
    first = World(filled(), engine()).start()
    first.source.evict(1, 3)
    first.source.commit(1)
    second = World(first.source, first.redis).start()
    assert second.projection.rebuilds == 0
    assert second.is_mirrored()


def test_an_envelope_that_cannot_be_read_has_no_document() -> None:
    world = World(filled(), engine()).start()
    committed = world.source.commit(1)
    (row,) = committed.rows
    spoilt = msgspec.structs.replace(row, envelope=b'{"sent_at":"2026"}')
    world.receive(WRITER_PROJECTOR, msgspec.structs.replace(committed, rows=[spoilt]))
    world.settle()
    assert world.projection.ready
    assert b"d:1:4" not in world.redis.hashes
    assert [note.fields["error"] for note in world.notes if note.action == "unreadable_row"]


def test_a_gateway_that_comes_later_is_told_which_index() -> None:
    world = World(filled(), engine()).start()
    world.happen(Opened(PROJECTOR_GATEWAY))
    assert world.projection.search == "query_engine"
