"""What retention has deleted leaves Redis, and the writer is told what is left."""

from __future__ import annotations

import pytest

from agentbus.model.ids import ChannelId, CommitId, Seq
from agentbus.projector.states import State
from agentbus.wire.events import Opened
from agentbus.wire.links import (
    CONTROL,
    PROJECTOR_GATEWAY,
    WRITER_PROJECTOR,
    Boundary,
    ChannelTop,
    Evicted,
    Measured,
    RedisDown,
    Stop,
    Trimmed,
    Visible,
)
from tests.support.memory_source import MemorySource
from tests.support.projector_world import World


def filled(*commits: tuple[int, ...]) -> MemorySource:
    source = MemorySource()
    for channels in commits:
        source.commit(*channels)
    return source


def ten() -> MemorySource:
    return filled(*[(1, 2)] * 10)


def extents(tops: list[ChannelTop]) -> list[tuple[int, int, int, int]]:
    return [(top.channel_id, top.count, top.oldest, top.top) for top in tops]


def rounds(world: World) -> list[tuple[int, int]]:
    return [(measured.round, measured.commit_id) for measured in world.told(Measured)]


# ---- live


def test_streams_are_trimmed_and_gateway_and_writer_are_told() -> None:
    world = World(ten()).start()
    world.evict(world.source.evict(1, 8), round_number=5)
    world.settle()
    assert world.is_mirrored()
    (trimmed,) = world.told(Trimmed)
    assert extents(trimmed.channels) == [(1, 3, 8, 10)]
    (measured,) = world.told(Measured)
    assert not measured.with_index
    assert (measured.round, measured.commit_id) == (5, 10)
    assert measured.dataset_bytes == world.redis._size()
    assert world.told(Visible) == []


def test_a_channel_of_which_all_went_begins_after_its_last_message() -> None:
    world = World(ten()).start()
    world.evict(world.source.evict(2, 11))
    world.settle()
    assert world.is_mirrored()
    assert extents(world.told(Trimmed)[0].channels) == [(2, 0, 11, 10)]
    world.commit(2)
    world.settle()
    assert world.is_mirrored()
    assert world.told(Visible)[-1].messages[0].seq == 11


def test_a_boundary_does_not_overtake_the_commits_before_it() -> None:
    world = World(ten()).start()
    for _ in range(6):
        world.commit(1)
    world.evict(world.source.evict(1, 15), round_number=1)
    world.commit(1)
    world.evict(world.source.evict(1, 18), round_number=2)
    world.commit(1)
    world.settle()
    assert world.is_mirrored()
    assert [extents(each.channels) for each in world.told(Trimmed)] == [
        [(1, 2, 15, 16)],
        [(1, 0, 18, 17)],
    ]
    assert rounds(world) == [(1, 16), (2, 17)]
    kinds = [type(sent) for _, sent in world.sent if type(sent) in (Visible, Trimmed)]
    assert kinds[-4:] == [Trimmed, Visible, Trimmed, Visible]


def test_the_measure_alone_can_be_asked_for() -> None:
    world = World(ten()).start()
    world.evict(round_number=1)
    world.evict(round_number=2)
    world.settle()
    assert rounds(world) == [(1, 10), (2, 10)]
    assert world.told(Trimmed) == []
    assert world.is_mirrored()


def test_a_boundary_that_is_reached_already_is_only_measured() -> None:
    world = World(ten()).start()
    boundary = world.source.evict(1, 8)
    world.evict(boundary, round_number=1)
    world.evict(boundary, round_number=2)
    world.settle()
    assert len(world.told(Trimmed)) == 1
    assert rounds(world) == [(1, 10), (2, 10)]


def test_a_refused_trim_makes_it_rebuild_and_the_measure_is_told_all_the_same() -> None:
    world = World(ten()).start()
    world.redis.refuse(b"XTRIM")
    world.evict(world.source.evict(1, 8))
    world.settle()
    assert world.is_mirrored()
    assert world.projection.rebuilds == 2
    assert rounds(world) == [(1, 10)]


# ---- recovery


@pytest.mark.parametrize("oldest", [4, 10, 11])
def test_a_rebuild_never_shows_what_was_evicted(oldest: int) -> None:
    source = ten()
    source.evict(1, oldest)
    world = World(source).start()
    assert world.is_mirrored()
    assert extents(world.projection.channels) == [
        (1, 11 - oldest, oldest, 10),
        (2, 10, 1, 10),
    ]


@pytest.mark.parametrize("oldest", [4, 10, 11, 13, 14])
@pytest.mark.parametrize("missed", [0, 3])
def test_catching_up_trims_what_was_evicted_meanwhile(oldest: int, missed: int) -> None:
    first = World(ten()).start()
    for _ in range(missed):
        first.source.commit(1)
    boundary = first.source.evict(1, oldest)
    second = World(first.source, first.redis).start()
    assert second.is_mirrored()
    assert second.projection.rebuilds == 0
    last = 10 + missed
    assert extents(second.projection.channels)[0] == (
        1,
        last + 1 - boundary.oldest,
        boundary.oldest,
        last,
    )
    assert second.told(Trimmed) == []


def test_what_is_evicted_during_a_rebuild_is_gone_at_its_end() -> None:
    world = World(filled(*[(1, 2, 3)] * 300))
    world.open_links()
    world.redis_up()
    world.greet()
    while world.state is not State.REBUILDING:
        world.step()
    world.step()
    world.evict(world.source.evict(1, 100), world.source.evict(3, 301), round_number=9)
    world.settle()
    assert world.is_mirrored()
    assert world.projection.rebuilds == 1
    assert rounds(world) == [(9, 300)]


def test_what_a_writer_evicted_and_could_not_tell_is_trimmed_when_another_greets() -> None:
    world = World(ten()).start()
    world.source.evict(1, 5)
    world.happen(Opened(WRITER_PROJECTOR))
    world.greet()
    world.settle()
    assert world.is_mirrored()
    assert extents(world.told(Trimmed)[0].channels) == [(1, 6, 5, 10)]
    assert world.projection.rebuilds == 1


def test_a_measure_is_told_once_redis_is_back() -> None:
    world = World(ten()).start()
    world.redis.run((b"SAVE",))
    world.evict(world.source.evict(1, 5), round_number=3)
    world.cut()
    world.receive(CONTROL, RedisDown("killed"))
    world.evict(world.source.evict(1, 6), round_number=4)
    assert world.told(Measured) == []
    world.redis.restart(pid=4712)
    world.redis_up()
    world.settle()
    assert world.is_mirrored()
    assert rounds(world) == [(3, 10), (4, 10)]
    world.pass_time(10)
    assert len(world.told(Measured)) == 2


def test_a_writer_that_is_gone_is_owed_nothing() -> None:
    world = World(ten()).start()
    world.evict(world.source.evict(1, 5), round_number=3)
    world.happen(Opened(WRITER_PROJECTOR))
    world.greet()
    world.settle()
    assert world.is_mirrored()
    assert world.told(Measured) == []


def test_an_orderly_stop_trims_what_was_told() -> None:
    world = World(ten()).start()
    world.evict(world.source.evict(1, 5))
    world.receive(CONTROL, Stop(snapshot=True))
    world.settle()
    assert world.exit_code == 0
    assert world.is_mirrored()


def test_a_gateway_that_comes_later_learns_where_streams_begin() -> None:
    world = World(ten()).start()
    world.evict(world.source.evict(1, 5), world.source.evict(2, 11))
    world.settle()
    world.happen(Opened(PROJECTOR_GATEWAY))
    assert extents(world.projection.channels) == [(1, 6, 5, 10), (2, 0, 11, 10)]


def test_a_boundary_of_a_channel_nobody_has_heard_of_is_no_trouble() -> None:
    world = World(ten()).start()
    world.receive(WRITER_PROJECTOR, Evicted(1, [Boundary(ChannelId(77), Seq(4))]))
    world.settle()
    assert world.projection.ready
    assert rounds(world) == [(1, CommitId(10))]
