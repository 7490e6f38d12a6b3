"""What the projection does when something happens."""

from __future__ import annotations

import pytest

from agentbus.errors import DatabaseDamaged, StorageFailed
from agentbus.mirror import keys
from agentbus.model.ids import ChannelId, CommitId
from agentbus.projector.events import Disconnected, Replied
from agentbus.projector.states import State
from agentbus.runtime import exits
from agentbus.wire.events import Closed, Opened
from agentbus.wire.links import (
    CONTROL,
    PROJECTOR_GATEWAY,
    WRITER_PROJECTOR,
    Applied,
    Failing,
    Ping,
    Projection,
    Readiness,
    RedisDown,
    RedisStatus,
    RedisStatusAsk,
    RedisUnfit,
    Stop,
    Visible,
    WriterHello,
)
from tests.support.memory_source import MemorySource
from tests.support.model_redis import ModelRedis
from tests.support.projector_world import SOCKET, World


def filled(*commits: tuple[int, ...]) -> MemorySource:
    source = MemorySource()
    for channels in commits:
        source.commit(*channels)
    return source


def extents(world: World) -> list[tuple[int, int, int, int]]:
    channels = world.projection.channels
    return [(top.channel_id, top.count, top.oldest, top.top) for top in channels]


# ---- start


def test_without_a_writer_and_a_server_it_waits_and_says_for_what() -> None:
    world = World()
    world.open_links()
    assert world.state is State.WAITING
    assert world.told(Readiness)[-1].ready is False
    assert world.projection.ready is False
    world.redis_up()
    world.settle()
    assert world.projection.reason == "waiting for the writer"


def test_an_empty_bus_becomes_ready() -> None:
    world = World().start()
    assert world.told(Readiness)[-1] == Readiness(True, "")
    assert world.projection == Projection("boot-1", True, "", 1, CommitId(0), SOCKET, [])


def test_a_server_that_holds_nothing_is_filled_from_nothing() -> None:
    world = World(filled((1, 2), (1,), (3, 1)))
    world.source.empty_channels = [ChannelId(9)]
    world.start()
    assert world.is_mirrored()
    assert [
        (top.channel_id, top.count, top.oldest, top.top) for top in world.projection.channels
    ] == [
        (1, 3, 1, 3),
        (2, 1, 1, 1),
        (3, 1, 1, 1),
        (9, 0, 0, 0),
    ]
    assert world.projection.channels[0].newest_at == "2026-11-30T16:40:27.001Z"
    assert world.told(Applied)[-1] == Applied(CommitId(3))
    assert world.projection.rebuilds == 1


def test_a_server_that_holds_the_past_is_caught_up_without_a_new_epoch() -> None:
    first = World(filled((1, 2), (1,))).start()
    first.source.commit(2, 2)
    first.source.commit(5)
    second = World(first.source, first.redis).start()
    assert second.is_mirrored()
    assert second.projection.rebuilds == 0
    assert [
        (top.channel_id, top.count, top.oldest, top.top) for top in second.projection.channels
    ] == [
        (1, 2, 1, 2),
        (2, 3, 1, 3),
        (5, 1, 1, 1),
    ]
    assert second.told(Applied) == [Applied(CommitId(2)), Applied(CommitId(4))]


def test_what_was_caught_up_is_not_told_message_by_message() -> None:
    first = World(filled((1, 2))).start()
    first.source.commit(2)
    assert World(first.source, first.redis).start().told(Visible) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda world: setattr(world.source, "instance", "bus-2"), "another bus"),
        (lambda world: setattr(world.source, "schema", 2), "another version"),
        (lambda world: world.source.forget_last_commit(), "ahead of the database"),
        (lambda world: setattr(world.source, "purge_floor", 3), "older than what was purged"),
        (lambda world: world.redis.hashes.clear(), "Redis is empty"),
        (
            lambda world: world.redis.hashes[keys.META].update({keys.COMMIT: b"rebuilding-3"}),
            "middle of a rebuild",
        ),
    ],
)
def test_what_cannot_be_carried_on_from_is_cleared(change, reason: str) -> None:
    first = World(filled((1, 2), (1,))).start()
    first.redis.streams[b"s:99"] = {1: [b"e", b"rubbish"]}
    change(first)
    second = World(first.source, first.redis).start()
    assert second.is_mirrored()
    assert second.projection.rebuilds == 1
    assert any(reason in told.reason for told in second.told(Projection))


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_a_mark_that_moved_past_a_refused_command_is_not_believed(missing: int) -> None:
    first = World(filled((1, 2), (1,), (1,))).start()
    del first.redis.streams[b"s:1"][missing]
    second = World(first.source, first.redis).start()
    assert second.is_mirrored()
    assert second.projection.rebuilds == 1


def test_a_stream_that_is_gone_is_not_believed_to_be_empty() -> None:
    first = World(filled((1, 2))).start()
    del first.redis.streams[b"s:2"]
    second = World(first.source, first.redis).start()
    assert second.is_mirrored()
    assert second.projection.rebuilds == 1


def test_a_projector_killed_before_it_read_a_refusal_leaves_no_hole() -> None:
    first = World(filled((1,))).start()
    first.redis.refuse(b"XADD", skip=1)
    for _ in range(4):
        first.commit(1, 2)
    second = World(first.source, first.redis).start()
    assert second.is_mirrored()
    assert second.projection.rebuilds == 1


def test_commits_without_rows_do_not_stop_recovery() -> None:
    first = World(filled((1,))).start()
    first.source.commits += [[], []]
    second = World(first.source, first.redis).start()
    assert second.state is State.READY
    assert second.told(Applied)[-1] == Applied(CommitId(3))


def test_a_database_that_does_not_tell_its_last_commits_makes_it_rebuild(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = World(filled((1,))).start()
    first.source.commit(1)
    second = World(first.source, first.redis)
    monkeypatch.setattr(first.source, "events_after", lambda *_: None)
    second.start()
    assert second.is_mirrored()
    assert second.state is State.READY
    assert second.projection.rebuilds == 1


def test_what_is_committed_during_a_rebuild_is_there_at_its_end() -> None:
    world = World(filled(*[(1, 2, 3)] * 300))
    world.open_links()
    world.redis_up()
    world.greet()
    while world.state is not State.REBUILDING:
        world.step()
    world.step()
    world.commit(2, 2)
    world.settle()
    assert world.is_mirrored()
    assert world.projection.rebuilds == 1


# ---- live


def test_a_commit_becomes_visible_and_applied_once_it_is_in_its_stream() -> None:
    world = World().start()
    world.commit(1, 2, text="hello")
    assert world.told(Visible) == []
    world.settle()
    (visible,) = world.told(Visible)
    assert visible.commit_id == 1
    assert [(m.channel_id, m.seq, m.session_id) for m in visible.messages] == [(1, 1, 7), (2, 1, 7)]
    assert world.told(Applied)[-1] == Applied(CommitId(1))
    assert world.is_mirrored()


def test_commits_that_wait_are_written_together_and_in_order() -> None:
    world = World().start()
    for number in range(20):
        world.commit(1, 2, text="y" * number)
    world.settle()
    assert world.is_mirrored()
    counts = [len(visible.messages) for visible in world.told(Visible)]
    assert counts == [2, 2, 36]


def test_one_transaction_is_bounded() -> None:
    world = World().start()
    for _ in range(400):
        world.commit(1, 2)
    world.settle()
    assert world.is_mirrored()
    assert max(len(visible.messages) for visible in world.told(Visible)) == 256


def test_a_missed_commit_is_read_from_the_database() -> None:
    world = World().start()
    world.commit(1)
    world.source.commit(1)
    world.commit(1)
    world.settle()
    assert world.is_mirrored()
    assert world.projection.ready
    assert world.projection.rebuilds == 1
    assert [told.ready for told in world.told(Readiness)][-2:] == [False, True]


def test_a_commit_that_was_read_from_the_database_already_is_passed_over() -> None:
    world = World(filled((1,)))
    known = world.source.commit(1)
    world.start()
    world.receive(WRITER_PROJECTOR, known)
    world.settle()
    assert world.is_mirrored()
    assert world.told(Visible) == []
    assert world.projection.rebuilds == 1


def test_own_session_goes_with_each_message() -> None:
    world = World().start()
    world.commit(1)
    world.settle()
    assert world.redis.streams[b"s:1"][1][2:] == [keys.SESSION, b"7"]


# ---- the writer comes back


def test_a_restarted_writer_hears_ready_only_after_it_has_greeted() -> None:
    world = World(filled((1,))).start()
    world.happen(Closed(WRITER_PROJECTOR))
    world.happen(Opened(WRITER_PROJECTOR))
    assert world.told(Readiness)[-1].ready is False
    assert world.projection.ready is True
    world.greet()
    assert world.told(Readiness)[-1].ready is True


def test_what_a_writer_committed_and_could_not_tell_is_caught_up() -> None:
    world = World(filled((1,))).start()
    world.source.commit(1, 2)
    world.happen(Opened(WRITER_PROJECTOR))
    world.greet()
    world.settle()
    assert world.is_mirrored()
    assert world.projection.rebuilds == 1
    assert world.told(Readiness)[-1].ready is True


def test_a_writer_of_another_bus_makes_it_rebuild() -> None:
    world = World(filled((1,), (1,))).start()
    world.source.become("bus-2")
    world.source.commit(3)
    world.happen(Opened(WRITER_PROJECTOR))
    world.greet()
    world.settle()
    assert world.is_mirrored()
    assert world.projection.rebuilds == 2


def test_a_database_that_lost_its_newest_commits_makes_it_rebuild() -> None:
    world = World(filled((1,), (1,))).start()
    world.source.forget_last_commit()
    world.happen(Opened(WRITER_PROJECTOR))
    world.greet()
    world.settle()
    assert world.is_mirrored()
    assert world.projection.rebuilds == 2


def test_a_database_that_cannot_be_read_is_tried_again() -> None:
    world = World(filled((1,)))
    world.source.error = StorageFailed("the disk is gone")
    world.start()
    assert world.state is State.WAITING
    assert "the disk is gone" in world.projection.reason
    world.source.error = None
    world.pass_time(2)
    assert world.told(Readiness)[-1].ready is True
    assert world.is_mirrored()


def test_a_damaged_database_ends_the_daemon_with_the_reason() -> None:
    world = World(filled((1,)))
    world.source.error = DatabaseDamaged("bus.db is damaged")
    world.start()
    (failing,) = world.told(Failing)
    assert (failing.failure.code, failing.failure.message) == (
        "database_damaged",
        "bus.db is damaged",
    )
    assert world.exit_code == exits.FAILING


# ---- Redis goes away or is changed


def test_a_lost_connection_is_told_at_once_and_made_again() -> None:
    world = World(filled((1,))).start()
    world.cut()
    assert world.told(Readiness)[-1] == Readiness(False, "the connection to Redis was lost")
    assert world.projection.socket_path is None
    world.pass_time(1)
    assert world.told(Readiness)[-1].ready is True
    assert world.projection.rebuilds == 1


@pytest.mark.parametrize("answered", [0, 1])
def test_a_server_killed_in_the_middle_of_its_work_comes_back_from_its_snapshot(
    answered: int,
) -> None:
    world = World(filled((1, 2))).start()
    world.redis.run((b"SAVE",))
    for _ in range(5):
        world.commit(1, 2)
    for _ in range(answered):
        world.step()
    world.cut()
    world.receive(CONTROL, RedisDown("killed by signal 9"))
    assert world.projection.reason == "Redis has ended (killed by signal 9)"
    world.redis.restart(pid=4712)
    world.redis_up()
    world.settle()
    assert world.is_mirrored()
    assert world.projection.rebuilds == 1
    assert world.projection.commit_id == 6


def test_a_flush_from_outside_is_seen_by_the_next_commit() -> None:
    world = World(filled((1, 2))).start()
    world.redis.run((b"FLUSHALL",))
    world.commit(1)
    world.settle()
    assert world.is_mirrored()
    assert world.projection.rebuilds == 2
    assert world.told(Visible) == []


def test_a_flush_from_outside_is_seen_by_the_check_when_nothing_is_sent() -> None:
    world = World(filled((1, 2))).start()
    world.redis.run((b"FLUSHALL",))
    world.pass_time(3)
    assert world.is_mirrored()
    assert world.projection.rebuilds == 2


@pytest.mark.parametrize("skip", [0, 1, 3])
def test_a_refused_command_inside_a_transaction_makes_it_rebuild(skip: int) -> None:
    world = World(filled((1, 2))).start()
    world.redis.refuse(b"XADD", skip=skip)
    for _ in range(4):
        world.commit(1, 2)
    world.settle()
    assert world.is_mirrored()
    assert world.projection.rebuilds == 2
    assert any("refused by the test" in told.reason for told in world.told(Projection))


def test_a_server_without_memory_is_told_and_tried_with_growing_pauses() -> None:
    world = World(filled((1, 2))).start()
    world.redis.out_of_memory = True
    world.commit(1)
    world.settle()
    assert world.told(Readiness)[-1].ready is False
    assert "OOM" in world.projection.reason
    tries = len([note for note in world.notes if note.action == "rebuild"])
    world.pass_time(20)
    assert len([note for note in world.notes if note.action == "rebuild"]) <= tries + 6
    world.redis.out_of_memory = False
    world.pass_time(31)
    assert world.is_mirrored()
    assert world.projection.ready


def test_a_server_that_is_silent_is_given_up_and_after_a_while_reported() -> None:
    world = World(filled((1,))).start()
    world.mute = True
    world.pass_time(16)
    assert world.told(Readiness)[-1] == Readiness(False, "Redis does not answer")
    assert world.told(RedisUnfit) == []
    world.pass_time(60)
    assert world.told(RedisUnfit)[0].pid == world.redis.pid
    assert world.told(RedisUnfit)[0].fatal is False


def test_a_server_that_cannot_be_reached_is_tried_again_and_after_a_while_reported() -> None:
    world = World(filled((1,)))
    world.reachable = False
    world.start()
    world.pass_time(10)
    assert world.projection.reason == "Redis cannot be reached"
    assert world.told(RedisUnfit) == []
    world.pass_time(30)
    assert len(world.told(RedisUnfit)) == 1
    world.reachable = True
    world.pass_time(5)
    assert world.projection.ready


def test_a_server_that_loads_its_snapshot_is_waited_for() -> None:
    redis = ModelRedis()
    redis.loading = True
    world = World(filled((1,)), redis).start()
    world.pass_time(100)
    assert world.state is State.WAITING
    assert world.told(RedisUnfit) == []
    redis.loading = False
    world.pass_time(1)
    assert world.projection.ready


# ---- identity and fitness


def test_a_server_of_another_process_is_left_alone() -> None:
    world = World(filled((1,)))
    world.redis.streams[b"theirs"] = {1: [b"a", b"b"]}
    world.redis.pid = 1
    announced = ModelRedis().pid
    world.open_links()
    world.greet()
    world.redis.pid = announced
    world.redis_up()
    world.redis.pid = 1
    world.settle()
    world.pass_time(5)
    (unfit,) = world.told(RedisUnfit)
    assert (unfit.pid, unfit.fatal) == (announced, False)
    assert b"theirs" in world.redis.streams
    assert world.told(Readiness)[-1].ready is False


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": "7.1.9"}, "at least valkey 7.2"),
        ({"flavour": "redis", "version": "6.2.14"}, "at least redis 7.0"),
        ({"missing": {b"XREVRANGE"}}, "it has no XREVRANGE"),
        ({"policy": b"allkeys-lru"}, "noeviction"),
    ],
)
def test_a_server_that_cannot_serve_is_refused_for_good(change, reason: str) -> None:
    world = World()
    for name, value in change.items():
        setattr(world.redis, name, value)
    world.start()
    (unfit,) = world.told(RedisUnfit)
    assert unfit.fatal is True
    assert unfit.failure.code == "redis_incompatible"
    assert reason in unfit.failure.message
    assert reason in world.projection.reason


# ---- status


def test_status_says_what_the_server_is() -> None:
    world = World(filled((1,))).start()
    world.receive(PROJECTOR_GATEWAY, RedisStatusAsk(5))
    world.settle()
    (status,) = world.told(RedisStatus)
    assert (status.ref, status.healthy, status.flavour, status.version) == (
        5,
        True,
        "valkey",
        "9.1.2",
    )
    assert (status.pid, status.search, status.commit_id) == (4711, "fts5", 1)
    assert status.dataset_bytes > 0


def test_status_is_answered_without_a_server() -> None:
    world = World(filled((1,))).start()
    world.mute = True
    world.receive(PROJECTOR_GATEWAY, RedisStatusAsk(5))
    world.cut()
    world.receive(PROJECTOR_GATEWAY, RedisStatusAsk(6))
    assert [(status.ref, status.healthy) for status in world.told(RedisStatus)] == [
        (5, False),
        (6, False),
    ]


# ---- snapshots and the end


def test_a_snapshot_is_asked_for_when_enough_has_changed_but_not_at_once_again() -> None:
    world = World(filled(*[(1,)] * 100)).start()
    world.redis.changes = 30_000
    world.pass_time(63)
    assert world.redis.saves == 1
    world.redis.changes = 30_000
    world.pass_time(30)
    assert world.redis.saves == 1
    world.pass_time(40)
    assert world.redis.saves == 2


def test_a_snapshot_is_asked_for_some_minutes_after_a_change() -> None:
    world = World(filled((1,))).start()
    world.pass_time(290)
    assert world.redis.saves == 0
    world.pass_time(20)
    assert world.redis.saves == 1
    world.pass_time(1000)
    assert world.redis.saves == 1


def test_an_orderly_stop_writes_what_waits_and_saves() -> None:
    world = World(filled((1,))).start()
    for _ in range(10):
        world.commit(1, 2)
    world.source.commit(3)
    world.receive(CONTROL, Stop(snapshot=True))
    assert world.told(Readiness)[-1] == Readiness(False, "stopping")
    world.settle()
    assert world.exit_code == 0
    assert world.is_mirrored()
    assert world.redis.saves == 1
    assert world.redis.changes == 0
    world.redis.restart(pid=5)
    assert world.is_mirrored()


def test_a_stop_that_asks_for_no_snapshot_makes_none() -> None:
    world = World(filled((1,))).start()
    world.receive(CONTROL, Stop())
    world.settle()
    assert (world.exit_code, world.redis.saves) == (0, 0)


def test_a_snapshot_under_way_is_waited_for() -> None:
    world = World(filled((1,))).start()
    world.redis.saving = True
    world.receive(CONTROL, Stop(snapshot=True))
    world.pass_time(1)
    assert world.exit_code is None
    world.redis.saving = False
    world.pass_time(1)
    assert (world.exit_code, world.redis.saves) == (0, 1)


def test_a_stop_takes_no_longer_than_its_limit() -> None:
    world = World(filled((1,))).start()
    world.mute = True
    world.receive(CONTROL, Stop(snapshot=True))
    world.pass_time(31)
    assert world.exit_code == 0


def test_a_stop_without_a_current_projection_is_immediate() -> None:
    world = World()
    world.open_links()
    world.receive(CONTROL, Stop(snapshot=True))
    assert world.exit_code == 0


def test_whatever_is_lost_while_stopping_ends_it() -> None:
    world = World(filled((1,))).start()
    world.mute = True
    world.receive(CONTROL, Stop(snapshot=True))
    world.cut()
    assert world.exit_code == 0


def stopping() -> World:
    world = World(filled((1,))).start()
    world.commit(1)
    world.receive(CONTROL, Stop(snapshot=True))
    return world


def test_a_database_lost_while_stopping_ends_it() -> None:
    world = stopping()
    world.source.error = StorageFailed("the disk is gone")
    world.settle()
    assert (world.exit_code, world.redis.saves) == (0, 0)


def test_a_projection_in_doubt_while_stopping_is_not_saved() -> None:
    world = World(filled((1,))).start()
    world.redis.refuse(b"XADD")
    world.commit(1)
    world.receive(CONTROL, Stop(snapshot=True))
    world.settle()
    assert (world.exit_code, world.redis.saves) == (0, 0)


def test_writers_that_come_and_go_while_stopping_change_nothing() -> None:
    world = stopping()
    world.source.commit(1)
    world.commit(1)
    world.happen(Opened(WRITER_PROJECTOR))
    world.greet()
    world.receive(CONTROL, Stop(snapshot=True))
    world.settle()
    assert (world.exit_code, world.redis.saves) == (0, 1)
    assert world.is_mirrored()


def test_a_last_snapshot_that_is_refused_is_not_waited_for() -> None:
    world = stopping()
    world.redis.refuse(b"SAVE", "ERR no")
    world.settle()
    assert world.exit_code == 0
    assert world.notes[-1].fields == {"why": "refused: ERR no"}


def test_snapshots_that_fail_are_noted_once() -> None:
    world = World(filled((1,))).start()
    world.redis.changes = 30_000
    world.redis.refuse(b"BGSAVE", "ERR no")
    world.pass_time(62)
    world.redis.save_failed = True
    world.pass_time(30)
    actions = [note.action for note in world.notes]
    assert actions.count("snapshot_refused") == 1
    assert actions.count("snapshot_failed") == 1
    assert world.projection.ready


def test_a_refused_look_at_the_streams_makes_it_rebuild() -> None:
    first = World(filled((1,))).start()
    first.redis.refuse(b"XLEN")
    second = World(first.source, first.redis).start()
    assert second.is_mirrored()
    assert second.projection.rebuilds == 1


def test_what_a_connection_given_up_says_is_nothing() -> None:
    world = World(filled((1,)))
    world.open_links()
    world.redis_up()
    stale = list(world.following)
    world.receive(CONTROL, RedisDown("killed"))
    world.greet()
    for event in stale:
        world.happen(event)
    world.happen(Disconnected(1, "late"))
    world.happen(Replied(1, [b"PONG"]))
    assert world.projection.reason == "Redis has ended (killed)"


def test_a_message_nobody_expects_is_noted() -> None:
    world = World()
    world.receive(CONTROL, Ping(1))
    assert world.notes[-1].action == "unexpected"


def test_a_gateway_that_comes_later_is_told_everything() -> None:
    world = World(filled((1,))).start()
    world.commit(1)
    world.settle()
    world.happen(Opened(PROJECTOR_GATEWAY))
    assert world.projection.commit_id == 2
    assert world.projection.channels[0].top == 2


def test_greetings_before_the_server_are_remembered() -> None:
    world = World(filled((1,)))
    world.open_links()
    world.receive(WRITER_PROJECTOR, WriterHello("bus-1", CommitId(1)))
    assert world.projection.reason == "waiting for Redis"
    world.redis_up()
    world.settle()
    assert world.projection.ready
