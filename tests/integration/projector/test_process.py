"""A projector between a real database and a real server, through what can happen to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentbus.mirror import keys
from agentbus.wire.links import (
    Applied,
    Committed,
    Projection,
    Readiness,
    Ready,
    RedisDown,
    RedisStatus,
    RedisStatusAsk,
    RedisUnfit,
    RedisUp,
    Stop,
    Visible,
)

Launch = Callable[[], Any]


def is_ready(message: Any) -> bool:
    return isinstance(message, Projection) and message.ready


def is_not_ready(message: Any) -> bool:
    return isinstance(message, Projection) and not message.ready


def is_applied(commit_id: int) -> Callable[[Any], bool]:
    return lambda message: isinstance(message, Applied) and message.commit_id == commit_id


def is_visible(commit_id: int) -> Callable[[Any], bool]:
    return lambda message: isinstance(message, Visible) and message.commit_id == commit_id


def is_told(ready: bool) -> Callable[[Any], bool]:
    return lambda message: isinstance(message, Readiness) and message.ready is ready


def assert_mirrored(valkey: Any, bus: Any) -> None:
    for channel, expected in bus.streams().items():
        (found,) = valkey.run((b"XRANGE", keys.stream(channel), b"-", b"+"))
        assert [(identity, fields) for identity, fields in found] == expected
    (mark,) = valkey.run((b"HMGET", keys.META, keys.INSTANCE, keys.COMMIT))
    assert mark == [bus.instance.encode(), b"%d" % bus.newest]


def ready(launch: Launch, valkey: Any, bus: Any) -> tuple[Any, Projection]:
    process = launch()
    process.control.send(valkey.up)
    process.greet(bus)
    return process, process.gateway.receive(is_ready)


def test_commits_reach_their_streams_and_are_told(launch: Launch, valkey: Any, bus: Any) -> None:
    bus.commit(1, 2)
    process, projection = ready(launch, valkey, bus)
    process.control.expect(Ready)
    assert (projection.rebuilds, projection.commit_id) == (1, 1)
    process.writer.receive(is_told(ready=True))
    process.writer.send(bus.commit(1, 1, content="é\u2028\0"), bus.commit(3))
    visible = process.gateway.receive(is_visible(3))
    assert visible.messages[-1].channel_id == 3
    process.writer.receive(is_applied(3))
    assert_mirrored(valkey, bus)


def test_the_database_may_come_after_the_projector(
    launch: Launch, valkey: Any, paths: Any, request: Any
) -> None:
    process = launch()
    process.control.send(valkey.up)
    process.gateway.receive(is_not_ready)
    bus = request.getfixturevalue("bus")
    bus.commit(2)
    process.greet(bus)
    assert process.gateway.receive(is_ready).commit_id == 1


def test_a_restarted_projector_catches_up(launch: Launch, valkey: Any, bus: Any) -> None:
    process, _ = ready(launch, valkey, bus)
    process.writer.send(bus.commit(1, 2))
    process.writer.receive(is_applied(1))
    process.kill()
    for _ in range(700):
        bus.commit(1, 3)
    again, projection = ready(launch, valkey, bus)
    assert (projection.rebuilds, projection.commit_id) == (0, 701)
    assert [(top.count, top.oldest, top.top) for top in projection.channels] == [
        (701, 1, 701),
        (1, 1, 1),
        (700, 1, 700),
    ]
    assert_mirrored(valkey, bus)
    again.writer.send(bus.commit(2))
    again.writer.receive(is_applied(702))
    assert_mirrored(valkey, bus)


def test_a_flush_from_outside_is_repaired_without_anybody_asking(
    launch: Launch, valkey: Any, bus: Any
) -> None:
    for _ in range(600):
        bus.commit(1, 2, 3)
    process, _ = ready(launch, valkey, bus)
    valkey.run((b"FLUSHALL",))
    process.gateway.receive(is_not_ready)
    assert process.gateway.receive(is_ready).rebuilds == 2
    assert_mirrored(valkey, bus)


def test_another_bus_in_the_server_is_cleared(launch: Launch, valkey: Any, bus: Any) -> None:
    valkey.run(
        (b"XADD", b"s:1", b"900-0", b"e", b"{}", b"s", b"1"),
        (b"SET", b"other", b"x"),
        (b"HSET", keys.META, keys.INSTANCE, b"bus-0", keys.SCHEMA, b"1.1", keys.COMMIT, b"0"),
    )
    bus.commit(1)
    _, projection = ready(launch, valkey, bus)
    assert projection.rebuilds == 1
    assert valkey.run((b"EXISTS", b"other")) == [0]
    assert_mirrored(valkey, bus)


def test_a_refused_command_in_a_transaction_makes_it_rebuild(
    launch: Launch, valkey: Any, bus: Any
) -> None:
    bus.commit(1, 2)
    process, _ = ready(launch, valkey, bus)
    valkey.run((b"XADD", b"s:1", b"500-0", b"e", b"{}", b"s", b"1"))
    process.writer.send(bus.commit(1, 2))
    process.gateway.receive(is_not_ready)
    assert process.gateway.receive(is_ready).rebuilds == 2
    assert_mirrored(valkey, bus)


def test_a_server_without_memory_is_not_ready_until_it_has_some(
    launch: Launch, valkey: Any, bus: Any
) -> None:
    process, _ = ready(launch, valkey, bus)
    valkey.run((b"CONFIG", b"SET", b"maxmemory", b"1000000"))
    process.writer.send(bus.commit(*[1] * 200, content="x" * 5000))
    told = process.writer.receive(is_told(ready=False))
    while "OOM" not in told.reason:
        told = process.writer.receive(is_told(ready=False))
    valkey.run((b"CONFIG", b"SET", b"maxmemory", b"0"))
    process.gateway.receive(is_ready)
    assert_mirrored(valkey, bus)


def test_a_snapshot_at_the_stop_is_what_the_next_start_goes_on_from(
    launch: Launch, valkey: Any, bus: Any
) -> None:
    process, _ = ready(launch, valkey, bus)
    process.writer.send(bus.commit(1, 2), bus.commit(3))
    bus.commit(1)
    process.control.send(Stop(snapshot=True))
    assert process.wait() == 0
    bus.commit(2)
    valkey.restart()
    _, projection = ready(launch, valkey, bus)
    assert (projection.rebuilds, projection.commit_id) == (0, 4)
    assert_mirrored(valkey, bus)


def test_a_server_killed_in_the_middle_of_a_batch_is_made_whole(
    launch: Launch, valkey: Any, bus: Any
) -> None:
    bus.commit(1, 2)
    process, _ = ready(launch, valkey, bus)
    valkey.run((b"SAVE",))
    commits: list[Committed] = [bus.commit(1, 2, 3, content="y" * 20_000) for _ in range(300)]
    process.writer.send(*commits[:150])
    process.gateway.expect(Visible)
    valkey.kill()
    process.writer.send(*commits[150:])
    process.gateway.receive(is_not_ready)
    process.control.send(RedisDown("killed by signal 9"))
    valkey.start()
    process.control.send(valkey.up)
    projection = process.gateway.receive(is_ready)
    assert (projection.rebuilds, projection.commit_id) == (1, 301)
    assert_mirrored(valkey, bus)
    process.writer.send(bus.commit(2))
    process.gateway.receive(is_visible(302))


def test_a_server_killed_in_the_middle_of_a_rebuild_is_made_whole(
    launch: Launch, valkey: Any, bus: Any
) -> None:
    for _ in range(400):
        bus.commit(1, 2, 3, content="y" * 20_000)
    process = launch()
    process.control.send(valkey.up)
    process.greet(bus)
    process.gateway.receive(lambda message: "rebuilding" in message.reason)
    valkey.run((b"SAVE",))
    valkey.restart()
    process.control.send(RedisDown("killed by signal 9"), valkey.up)
    process.gateway.receive(is_ready)
    assert_mirrored(valkey, bus)


def test_the_server_of_another_process_is_not_touched(
    launch: Launch, valkey: Any, bus: Any
) -> None:
    valkey.run((b"SET", b"theirs", b"x"))
    process = launch()
    process.control.send(RedisUp(valkey.socket_path, 1, "valkey-server", "9.1.2"))
    process.greet(bus)
    unfit = process.control.expect(RedisUnfit)
    assert (unfit.pid, unfit.fatal, unfit.failure.code) == (1, False, "redis_incompatible")
    assert valkey.run((b"DBSIZE",)) == [1]


def test_status_tells_about_the_server(launch: Launch, valkey: Any, bus: Any) -> None:
    process, _ = ready(launch, valkey, bus)
    process.gateway.send(RedisStatusAsk(3))
    status = process.gateway.expect(RedisStatus)
    assert (status.ref, status.healthy, status.flavour) == (3, True, "valkey")
    assert (status.version, status.pid, status.search) == ("9.1.2", valkey.pid, "fts5")
    assert status.dataset_bytes > 0


def test_it_ends_with_its_supervisor(launch: Launch, valkey: Any, bus: Any) -> None:
    process, _ = ready(launch, valkey, bus)
    process.control.socket.close()
    assert process.wait() == 75
