"""Memories and evictions between the real writer's database and a real server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentbus.mirror import keys, write
from agentbus.mirror.read import Reading
from agentbus.mirror.resp import Refused
from agentbus.model.ids import ChannelId, Seq
from agentbus.wire.links import (
    Applied,
    Evicted,
    Measured,
    Projection,
    SearchBackend,
    Trimmed,
    Visible,
)

Launch = Callable[[], Any]

GENERAL, MEMORY = ChannelId(1), ChannelId(2)


def is_ready(message: Any) -> bool:
    return isinstance(message, Projection) and message.ready


def ready(launch: Launch, server: Any, written: Any) -> Any:
    process = launch()
    process.control.send(server.up)
    process.writer.send(written.hello)
    process.gateway.receive(is_ready)
    written.told()
    return process


def tell(process: Any, written: Any) -> None:
    """Everything the writer has told is in Redis when this returns."""
    told = written.told()
    process.writer.send(*told)
    last = told[-1].commit_id
    process.writer.receive(
        lambda message: isinstance(message, Applied) and message.commit_id == last
    )


def mirrored(server: Any) -> dict[tuple[int, int], bytes]:
    """What the gateway reads of both channels."""
    found: dict[tuple[int, int], bytes] = {}
    for channel in (GENERAL, MEMORY):
        reading = Reading(channel, Seq(0), forward=True, count=10**6, max_bytes=10**9)
        while not reading.done:
            reading.take(server.run(reading.command())[0])
        for entry in reading.page().entries:
            found[channel, entry.seq] = entry.envelope
    return found


def test_memories_live_and_after_a_restart(launch: Launch, valkey: Any, written: Any) -> None:
    process = ready(launch, valkey, written)
    assert process.control.expect(SearchBackend).indexer
    first = written.send("one", "memory").memory_id
    second = written.send("two", "memory").memory_id
    written.send("hello")
    written.edit(first, "one, edited")
    written.delete(second)
    tell(process, written)
    assert mirrored(valkey) == written.contents()
    visible = process.gateway.expect(Visible)
    assert [message.memory_id for message in visible.messages] == [None, first]
    process.kill()
    written.edit(first, "one, again")
    third = written.send("three", "memory").memory_id
    written.edit(third, "three, edited")
    process = ready(launch, valkey, written)
    assert mirrored(valkey) == written.contents()
    valkey.run((b"FLUSHALL",))
    process.gateway.receive(is_ready)
    assert mirrored(valkey) == written.contents()


def test_evictions_are_trimmed_and_measured(launch: Launch, valkey: Any, written: Any) -> None:
    process = ready(launch, valkey, written)
    for number in range(300):
        written.send(f"message {number} " + "x" * 1000)
    tell(process, written)
    process.writer.send(Evicted(1, []))
    before = process.writer.expect(Measured)
    process.writer.send(Evicted(2, [written.evict(201)]))
    after = process.writer.expect(Measured)
    assert (before.round, after.round) == (1, 2)
    assert before.dataset_bytes - after.dataset_bytes > 150 * 1000
    (top,) = process.gateway.expect(Trimmed).channels
    assert (top.count, top.oldest, top.top) == (100, 201, 300)
    assert mirrored(valkey) == written.contents()
    process.kill()
    written.evict(301)
    process = launch()
    process.control.send(valkey.up)
    process.writer.send(written.hello)
    projection = process.gateway.receive(is_ready)
    assert mirrored(valkey) == {}
    top = projection.channels[0]
    assert (projection.rebuilds, top.count, top.oldest, top.top) == (0, 0, 301, 300)


def test_the_only_way_in_which_an_edit_alone_is_refused_is_seen_by_the_next_projector(
    launch: Launch, valkey: Any, written: Any
) -> None:
    """Within `EXEC` a server refuses one command only for the type of its key: what else can be
    refused (no memory, a full disk, a replica) is so as a whole."""
    process = ready(launch, valkey, written)
    memory = written.send("one", "memory").memory_id
    tell(process, written)
    process.kill()
    (recalled,) = valkey.run(write.RECALL)
    before = write.recalled(recalled)
    written.edit(memory, "two")
    (committed,) = written.told()
    contents = keys.contents(MEMORY)
    valkey.run((b"DEL", contents), (b"SET", contents, b"somebody's"))
    changes = write.Changes([], edited=committed.rows)
    replies = valkey.run(*write.batch(before, before.at(committed.commit_id), changes))
    assert [isinstance(reply, Refused) for reply in replies[-1]] == [False, True, False]
    ready(launch, valkey, written)
    assert mirrored(valkey) == written.contents()
