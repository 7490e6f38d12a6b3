"""When snapshots are due, and what servers say of themselves."""

from __future__ import annotations

import pytest

from agentbus.mirror.resp import Refused
from agentbus.projector import server
from agentbus.projector.server import (
    SNAPSHOT_CHANGES,
    SNAPSHOT_SECONDS,
    SPACING_SECONDS,
    Loading,
    Persistence,
    Server,
    Snapshots,
    Unfit,
)
from agentbus.wire.links import RedisUp
from tests.support.model_redis import ModelRedis

UP = RedisUp("/tmp/r.sock", 4711, "redis-server", "7.4.0")


def examined(redis: ModelRedis) -> Server | Loading | Unfit:
    return server.examine(redis.connect().run_all(server.QUESTIONS), UP)


@pytest.mark.parametrize(
    ("flavour", "version"),
    [("redis", "7.0.0"), ("redis", "8.2.1"), ("valkey", "7.2.4"), ("valkey", "10.0.0-rc1")],
)
def test_servers_that_are_new_enough_are_fit(flavour: str, version: str) -> None:
    redis = ModelRedis(version=version)
    redis.flavour = flavour
    assert examined(redis) == Server(flavour, version, 4711, "fts5")


def test_a_server_that_refuses_to_be_asked_is_not_fit() -> None:
    redis = ModelRedis()
    replies = redis.connect().run_all(server.QUESTIONS)
    replies[2] = Refused("NOPERM no")
    assert isinstance(server.examine(replies, UP), Unfit)


def test_a_server_that_is_busy_with_its_snapshot_is_asked_again() -> None:
    redis = ModelRedis()
    redis.loading = True
    assert isinstance(examined(redis), Loading)
    replies = [Refused("LOADING"), Refused("LOADING"), [], []]
    assert isinstance(server.examine(replies, UP), Loading)


def test_a_server_with_a_query_engine_says_so() -> None:
    redis = ModelRedis()
    redis.query_engine = True
    verdict = examined(redis)
    assert isinstance(verdict, Server)
    assert verdict.search == "query_engine"


def test_a_part_of_a_query_engine_is_none() -> None:
    redis = ModelRedis()
    redis.query_engine = True
    redis.missing = {b"FT.AGGREGATE"}
    verdict = examined(redis)
    assert isinstance(verdict, Server)
    assert verdict.search == "fts5"


def changes(number: int, *, saving: bool = False) -> Persistence:
    return Persistence(number, saving, False)


def test_nothing_changed_is_nothing_to_save() -> None:
    snapshots = Snapshots()
    assert not any(snapshots.is_due(changes(0), float(now)) for now in range(0, 2000, 2))


def test_many_changes_are_saved_soon_but_not_all_the_time() -> None:
    snapshots = Snapshots()
    due = [now for now in range(0, 300, 2) if snapshots.is_due(changes(SNAPSHOT_CHANGES), now)]
    assert due == list(range(int(SPACING_SECONDS), 300, int(SPACING_SECONDS)))


def test_few_changes_are_saved_after_a_while() -> None:
    snapshots = Snapshots()
    due = [now for now in range(0, 650, 2) if snapshots.is_due(changes(1), now)]
    assert due == [int(SNAPSHOT_SECONDS), int(2 * SNAPSHOT_SECONDS) + 2]


def test_no_second_snapshot_is_begun_while_one_is_written() -> None:
    snapshots = Snapshots()
    many = changes(SNAPSHOT_CHANGES, saving=True)
    assert not any(snapshots.is_due(many, float(now)) for now in range(0, 500, 2))


def test_persistence_is_unknown_where_it_is_refused() -> None:
    assert server.persistence(Refused("NOPERM")) is None
    assert server.persistence(b"# Persistence\r\nrdb_last_bgsave_status:err\r\n") == Persistence(
        0, False, True
    )
