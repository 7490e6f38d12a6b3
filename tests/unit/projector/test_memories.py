"""Memories in the projection: created, edited, deleted, by whichever way they come in."""

from __future__ import annotations

import pytest

from agentbus.model.ids import CommitId
from agentbus.projector.states import State
from agentbus.wire.events import Opened
from agentbus.wire.links import (
    PROJECTOR_GATEWAY,
    WRITER_PROJECTOR,
    Applied,
    Committed,
    Projection,
    Visible,
)
from tests.support.memory_source import MemorySource
from tests.support.projector_world import World


def tell(world: World, *commits: Committed) -> None:
    """The writer commits and tells, in one turn."""
    world.receive(WRITER_PROJECTOR, *commits)


def remembering(count: int = 3) -> MemorySource:
    """`memory-1`, `memory-2` ... in channel 50, each of a commit of its own."""
    source = MemorySource()
    for _ in range(count):
        source.commit(50)
    return source


def shown(world: World) -> list[tuple[int, int, str | None]]:
    messages = [message for visible in world.told(Visible) for message in visible.messages]
    return [(message.channel_id, message.seq, message.memory_id) for message in messages]


# ---- live


def test_a_creation_becomes_visible_with_its_memory_id() -> None:
    world = World().start()
    tell(world, world.source.commit(1, 50))
    world.settle()
    assert world.is_mirrored()
    assert shown(world) == [(1, 1, None), (50, 1, "memory-1")]


def test_an_edit_replaces_the_content_in_place_and_only_moves_the_commit() -> None:
    world = World(remembering()).start()
    tell(world, world.source.edit("memory-2"))
    world.settle()
    assert world.is_mirrored()
    (visible,) = world.told(Visible)
    assert (visible.commit_id, visible.messages) == (4, [])
    assert world.told(Applied)[-1] == Applied(CommitId(4))


def test_a_deletion_removes_entry_and_content() -> None:
    world = World(remembering()).start()
    tell(world, world.source.delete("memory-2"))
    world.settle()
    assert world.is_mirrored()
    assert list(world.redis.streams[b"s:50"]) == [1, 3]
    (visible,) = world.told(Visible)
    assert (visible.commit_id, visible.messages) == (4, [])


def test_how_many_there_are_is_told_where_memories_were_changed() -> None:
    world = World(remembering()).start()
    tell(world, world.source.commit(1, 51))
    tell(world, world.source.delete("memory-2"))
    tell(world, world.source.commit(50, 50))
    world.settle()
    assert [
        [(top.channel_id, top.count) for top in each.channels] for each in world.told(Visible)
    ] == [
        [],
        [(50, 2)],
        [],
    ]


def test_a_creation_comes_with_the_content_of_the_edit_that_came_along() -> None:
    world = World(remembering()).start()
    tell(world, world.source.commit(1))
    tell(world, world.source.commit(1))
    tell(world, world.source.commit(50))
    tell(world, world.source.edit("memory-4", "better"))
    world.settle()
    assert world.is_mirrored()
    (last,) = [message for message in world.told(Visible)[-1].messages if message.memory_id]
    assert b"better" in last.envelope


def test_whatever_happens_within_one_commit_is_carried_out() -> None:
    world = World(remembering()).start()
    tell(
        world,
        world.source.transact(
            [
                ("add", 50),
                ("edit", "memory-4"),
                ("edit", "memory-1"),
                ("add", 50),
                ("delete", "memory-5"),
                ("edit", "memory-2"),
                ("delete", "memory-2"),
                ("add", 50),
            ]
        ),
    )
    world.settle()
    assert world.is_mirrored()
    assert shown(world) == [(50, 4, "memory-4"), (50, 6, "memory-6")]


def test_the_projection_counts_memories_that_are_left() -> None:
    world = World(remembering()).start()
    tell(world, world.source.delete("memory-1"))
    world.settle()
    world.happen(Opened(PROJECTOR_GATEWAY))
    (top,) = world.projection.channels
    assert (top.count, top.top) == (2, 3)


def test_a_created_memory_goes_on_after_one_that_was_deleted() -> None:
    world = World(remembering()).start()
    tell(world, world.source.delete("memory-3"))
    world.settle()
    tell(world, world.source.commit(50))
    world.settle()
    assert world.is_mirrored()
    assert shown(world) == [(50, 4, "memory-4")]


def test_what_changes_contents_travels_alone() -> None:
    world = World(remembering()).start()
    for number in range(6):
        tell(world, world.source.edit(f"memory-{1 + number % 3}"))
        tell(world, world.source.commit(1))
    outstanding = []
    while world.following:
        outstanding.append(len(world.following))
        world.step()
    assert set(outstanding) == {1}
    assert world.is_mirrored()


# ---- recovery


@pytest.mark.parametrize("snapshot_at", range(5))
def test_a_restarted_server_is_caught_up_from_any_snapshot(snapshot_at: int) -> None:
    world = World(remembering()).start()
    changes = [
        lambda: world.source.edit("memory-1"),
        lambda: world.source.transact([("add", 50), ("edit", "memory-4"), ("add", 50)]),
        lambda: world.source.delete("memory-2"),
        lambda: world.source.transact([("edit", "memory-1"), ("delete", "memory-5")]),
    ]
    for number, change in enumerate(changes):
        if number == snapshot_at:
            world.redis.run((b"SAVE",))
        tell(world, change())
        world.settle()
    if snapshot_at == len(changes):
        world.redis.run((b"SAVE",))
    world.cut()
    world.redis.restart(pid=4712)
    world.redis_up()
    world.settle()
    assert world.state is State.READY
    assert world.is_mirrored()
    assert world.projection.rebuilds == 1


def test_changes_that_were_missed_are_caught_up_without_a_new_epoch() -> None:
    world = World(remembering()).start()
    world.source.edit("memory-1")
    world.source.delete("memory-3")
    world.source.commit(50)
    tell(world, world.source.edit("memory-4"))
    world.settle()
    assert world.is_mirrored()
    assert world.projection.rebuilds == 1


def test_a_change_that_waited_when_a_commit_was_missed_is_made_once() -> None:
    world = World(remembering()).start()
    tell(world, world.source.commit(1))
    tell(world, world.source.transact([("add", 1), ("edit", "memory-1")]))
    world.source.commit(1)
    tell(world, world.source.commit(1))
    world.settle()
    assert world.is_mirrored()
    assert world.projection.rebuilds == 1


def test_a_rebuild_shows_what_is_current() -> None:
    source = remembering(4)
    source.edit("memory-1")
    source.delete("memory-3")
    world = World(source).start()
    assert world.is_mirrored()
    (top,) = world.projection.channels
    assert (top.channel_id, top.count, top.oldest, top.top) == (50, 3, 1, 4)
    assert top.newest_at


def test_what_is_changed_during_a_rebuild_is_there_at_its_end() -> None:
    world = World(remembering(600))
    world.open_links()
    world.redis_up()
    world.greet()
    while world.state is not State.REBUILDING:
        world.step()
    world.step()
    tell(world, world.source.edit("memory-1"), world.source.edit("memory-590"))
    world.step()
    tell(world, world.source.delete("memory-2"), world.source.delete("memory-599"))
    tell(world, world.source.transact([("add", 50), ("edit", "memory-601")]))
    world.settle()
    assert world.is_mirrored()
    assert world.projection.rebuilds == 1


def test_a_mark_from_before_a_purge_leads_to_a_rebuild() -> None:
    first = World(remembering()).start()
    first.source.delete("memory-1")
    first.source.purge()
    second = World(first.source, first.redis).start()
    assert second.is_mirrored()
    assert second.projection.rebuilds == 1
    assert any("purged" in told.reason for told in second.told(Projection))


def test_a_purge_while_catching_up_leads_to_a_rebuild() -> None:
    first = World(remembering()).start()
    for _ in range(1200):
        first.source.commit(1)
    first.source.delete("memory-1")
    second = World(first.source, first.redis)
    second.open_links()
    second.redis_up()
    second.greet()
    while len(second.told(Applied)) < 2:
        second.step()
    second.source.purge()
    second.settle()
    assert second.state is State.READY
    assert second.is_mirrored()
    assert second.projection.rebuilds == 1


# ---- doubt


@pytest.mark.parametrize(
    "spoil",
    [
        lambda redis: redis.run((b"XDEL", b"s:50", b"2-0")),
        lambda redis: redis.run((b"HDEL", b"m:50", b"memory-2")),
        lambda redis: redis.run((b"HSET", b"m:50", b"memory-9", b"{}")),
        lambda redis: redis.run((b"DEL", b"s:50")),
    ],
)
def test_memories_that_are_not_all_there_are_not_believed(spoil) -> None:
    first = World(remembering()).start()
    spoil(first.redis)
    second = World(first.source, first.redis).start()
    assert second.is_mirrored()
    assert second.projection.rebuilds == 1


@pytest.mark.parametrize("answered", range(4))
def test_a_projector_killed_before_it_read_a_refused_edit_leaves_nothing_obsolete(
    answered: int,
) -> None:
    first = World(remembering()).start()
    first.redis.refuse(b"EXEC", "OOM command not allowed", skip=0)
    for number in range(3):
        tell(first, first.source.edit(f"memory-{number + 1}"))
        tell(first, first.source.commit(50))
    for _ in range(answered):
        first.step()
    second = World(first.source, first.redis).start()
    assert second.is_mirrored()
