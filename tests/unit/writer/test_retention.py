"""What goes when, and that everything that is counted stays true."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbus.config import Settings
from agentbus.model.ids import Seq
from agentbus.model.ports import Instant
from agentbus.store.write.rows import MESSAGE_BYTES, RECEIPT_BYTES
from agentbus.wire.events import Note, TurnEnded
from agentbus.wire.links import (
    GATEWAY_WRITER,
    WRITER_PROJECTOR,
    Accepted,
    CapacityWarning,
    Evicted,
    GapAsk,
    GapTold,
    Measured,
    MemoryDelete,
    MemoryEdit,
    Mutated,
    Readiness,
    Refused,
    Report,
    StatusAsk,
)
from agentbus.writer import retention
from tests.support.writer_world import World

HOUR = 3600.0
COUNTED = ("messages", "memories", "tombstones", "receipts", "logical", "live")
SMALL = Settings(redis_budget_mib=64, sqlite_budget_mib=64, cleanup_interval_seconds=60)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path, SMALL) as world:
        yield world


def pass_time(world: World, seconds: float) -> None:
    """Hours pass as they do: a clock that leaps is another matter."""
    until = world.time + seconds
    while world.time < until:
        world.time = min(until, world.time + HOUR)
        world.handle(TurnEnded())
        clean(world)


def clean(world: World, chunks: int = 200) -> None:
    """Lets everything that is due be done."""
    for _ in range(chunks):
        if world.core._retention.at(world.now()) > world.time:
            return
        world.handle(TurnEnded())


def send(world: World, attachment: str, count: int, size: int = 10, **others: Any) -> list[Any]:
    answers = []
    for start in range(0, count, 100):
        operations = [
            world.append(attachment, f"{world.ref()}", "x" * size, **others)
            for _ in range(min(100, count - start))
        ]
        answers += world.ask(*operations)
    return answers


def edit(world: World, attachment: str, memory: str, content: str = "new") -> Any:
    operation = f"e{world.ref()}"
    (answer,) = world.ask(
        MemoryEdit(world.ref(), attachment, memory, operation, b"f" * 16, content)
    )
    return answer


def delete(world: World, attachment: str, memory: str) -> Any:
    (answer,) = world.ask(
        MemoryDelete(world.ref(), attachment, memory, f"d{world.ref()}", b"f" * 16)
    )
    return answer


def counted(world: World) -> dict[str, int]:
    (row,) = world.rows(
        "SELECT messages, memories, tombstones, receipts, logical_bytes, live_bytes FROM meta"
    )
    return dict(
        zip(("messages", "memories", "tombstones", "receipts", "logical", "live"), row, strict=True)
    )


def actual(world: World) -> dict[str, int]:
    (row,) = world.rows(
        f"""SELECT
            (SELECT count(*) FROM messages WHERE memory_id IS NULL),
            (SELECT count(*) FROM messages WHERE memory_id IS NOT NULL AND tombstone = 0),
            (SELECT count(*) FROM messages WHERE tombstone = 1),
            (SELECT count(*) FROM receipts),
            (SELECT ifnull(sum({MESSAGE_BYTES}), 0) FROM messages)
                + (SELECT ifnull(sum({RECEIPT_BYTES}), 0) FROM receipts),
            (SELECT ifnull(sum(length(envelope)), 0) FROM messages WHERE tombstone = 0)"""
    )
    return dict(
        zip(("messages", "memories", "tombstones", "receipts", "logical", "live"), row, strict=True)
    )


# ---- age


def test_messages_go_when_they_are_older_than_the_retention(world):
    sam = world.register().attachment
    send(world, sam, 5)
    pass_time(world, 100 * HOUR)
    send(world, sam, 3)
    assert counted(world)["messages"] == 8
    pass_time(world, 69 * HOUR)
    assert [row[0] for row in world.rows("SELECT seq FROM messages ORDER BY id")] == [6, 7, 8]
    assert counted(world) == actual(world)


def test_the_projector_is_told_what_is_left_of_each_channel(world):
    sam = world.register().attachment
    send(world, sam, 5)
    pass_time(world, 169 * HOUR)
    boundaries = [b for evicted in world.take(Evicted) for b in evicted.boundaries]
    assert [(b.channel_id, b.oldest) for b in boundaries] == [(1, 6)]


def test_memories_are_not_touched_by_any_age(world):
    sam = world.register().attachment
    send(world, sam, 4, channel="memory")
    send(world, sam, 4)
    pass_time(world, 500 * HOUR)
    assert counted(world)["memories"] == 4
    assert counted(world)["messages"] == 0


def test_a_send_is_answered_before_the_next_chunk_of_a_cleanup_and_the_chunk_follows(world):
    sam = world.register().attachment
    send(world, sam, 4 * retention.CHUNK_ROWS)
    clean(world)
    world.time += 169 * HOUR
    left = 4 * retention.CHUNK_ROWS
    for number in range(1, 4):
        world.tell(GATEWAY_WRITER, world.append(sam, f"meanwhile-{number}"))
        world.handle(TurnEnded())
        (answer,) = world.answers()
        assert isinstance(answer, Accepted)
        assert counted(world)["messages"] == left + number
        assert world.wake()
        left -= retention.LEAST_ROWS
        assert counted(world)["messages"] == left + number
    clean(world)
    assert counted(world)["messages"] == 3


@pytest.mark.parametrize("reports", [False, True], ids=["", "reports between"])
@pytest.mark.parametrize("batch", [1, 60, 250])
def test_a_chunk_is_larger_where_batches_of_sends_are_but_has_its_limits(world, batch, reports):
    registered = world.register()
    sam = registered.attachment
    send(world, sam, 4 * retention.CHUNK_ROWS)
    clean(world)
    world.time += 169 * HOUR
    before = counted(world)["messages"]
    content = "x" * 1_000
    for number in range(batch):
        world.tell(GATEWAY_WRITER, world.append(sam, f"later-{number}", content=content))
    world.handle(TurnEnded())
    world.answers()
    if reports:
        positions = [(info.id, Seq(1)) for info in registered.subscriptions[:1]]
        world.tell(GATEWAY_WRITER, Report(world.ref(), sam, positions))
        world.handle(TurnEnded())
        assert world.answers()
    assert world.wake()
    gone = before + batch - counted(world)["messages"]
    least, most = {1: (32, 32), 60: (100, 200), 250: (512, 512)}[batch]
    assert least <= gone <= most


def test_a_clock_that_leaps_deletes_nothing_for_an_hour(world):
    sam = world.register().attachment
    send(world, sam, 5)
    (made,) = send(world, sam, 1, channel="memory")
    edit(world, sam, made.memory_id)
    clean(world)
    before = counted(world)
    assert (before["messages"], before["tombstones"], before["receipts"]) == (5, 1, 7)
    real = world.now
    world.now = lambda: Instant(real().monotonic, real().wall + 400 * HOUR)
    world.time += 61
    clean(world)
    assert counted(world) == before
    assert [note.action for note in world.effects if isinstance(note, Note)] == ["clock_jumped"]
    pass_time(world, 2 * HOUR)
    after = counted(world)
    assert (after["messages"], after["tombstones"], after["receipts"]) == (0, 0, 0)


def test_receipts_go_after_their_lifetime_and_the_messages_stay(world):
    sam = world.register().attachment
    send(world, sam, 5)
    pass_time(world, 71 * HOUR)
    assert counted(world)["receipts"] == 5
    pass_time(world, 2 * HOUR)
    assert counted(world)["receipts"] == 0
    assert counted(world)["messages"] == 5
    assert counted(world) == actual(world)


def test_replaced_revisions_are_purged_after_their_minimum_age_and_raise_the_floor(world):
    sam = world.register().attachment
    (made,) = send(world, sam, 1, channel="memory")
    edited = edit(world, sam, made.memory_id)
    assert isinstance(edited, Mutated)
    pass_time(world, 71 * HOUR)
    assert counted(world)["tombstones"] == 1
    ((tombstoned,),) = world.rows("SELECT max(tombstone_commit_id) FROM messages")
    pass_time(world, 2 * HOUR)
    assert counted(world)["tombstones"] == 0
    assert world.rows("SELECT purge_floor FROM meta") == [(tombstoned,)]
    assert world.rows("SELECT revision FROM messages") == [(2,)]
    assert counted(world) == actual(world)


# ---- capacity


def test_a_full_budget_makes_room_before_it_admits_and_then_frees_a_quarter(world):
    sam = world.register().attachment
    refused = 0
    for _ in range(12):
        answers = send(world, sam, 100, size=60_000)
        refused += sum(isinstance(answer, Refused) for answer in answers)
        logical, live = counted(world)["logical"], counted(world)["live"]
        capacity = world.core._retention._capacity
        assert logical <= capacity.sqlite_limit
        assert capacity.projection(live) <= capacity.redis_limit
    assert refused == 0
    clean(world)
    stored = retention.Stored(counted(world)["logical"], counted(world)["live"])
    assert counted(world)["messages"] < 1200
    assert stored.live > 0
    assert counted(world) == actual(world)


def fill(world: World, attachment: str) -> int:
    """Until a cleanup has begun that is far from its end; how many there are then."""
    while not world.core._retention._cleaning:
        batch = [world.append(attachment, f"{world.ref()}", "x" * 60_000) for _ in range(10)]
        world.tell(GATEWAY_WRITER, *batch)
        world.handle(TurnEnded())
    world.sent.clear()
    return counted(world)["messages"]


def replace_writer(world: World) -> None:
    """It dies; its successor hears, after its greetings, that the projection takes messages."""
    world.restart(ready=False)
    world.tell(WRITER_PROJECTOR, Readiness(True, ""))
    world.handle(TurnEnded())


def measure(world: World, ratio: float = 1.5, *, with_index: bool = False) -> bool:
    """Redis tells its size, if it was asked."""
    asked = world.take(Evicted)
    if asked:
        size = int(counted(world)["live"] * ratio)
        answer = Measured(asked[-1].round, world.core._durable, size, with_index)
        world.tell(WRITER_PROJECTOR, answer)
    return bool(asked)


@pytest.mark.parametrize("chunks", [0, 1, 3])
def test_what_makes_room_is_carried_on_at_once_whoever_died_over_it(world, chunks):
    sam = world.register().attachment
    fill(world, sam)
    clean(world, chunks)
    assert world.core._retention._cleaning
    replace_writer(world)
    while measure(world):
        clean(world)
    stored = retention.Stored(counted(world)["logical"], counted(world)["live"])
    assert not world.core._retention._capacity.above_target(stored)
    assert counted(world) == actual(world)
    assert counted(world)["messages"] > 100


def test_that_waits_until_redis_has_told_its_size(world):
    sam = world.register().attachment
    held = fill(world, sam)
    replace_writer(world)
    clean(world)
    assert counted(world)["messages"] == held
    measure(world, ratio=1.0, with_index=True)
    clean(world)
    assert counted(world)["messages"] == held


def test_a_writer_that_starts_on_a_bus_that_is_nearly_full_deletes_nothing(world):
    sam = world.register().attachment
    fill(world, sam)
    clean(world)
    while world.core._retention._capacity.room(world.core._retention._stored()) > 3_000_000:
        send(world, sam, 10, size=60_000)
    held = counted(world)["messages"]
    measure(world)
    assert world.core._retention._capacity.above_target(world.core._retention._stored())
    replace_writer(world)
    clean(world)
    while measure(world):
        clean(world)
    assert counted(world)["messages"] == held


def test_oldest_first_across_all_channels_and_the_evicted_are_counted(world):
    sam = world.register(channels=["a", "b"]).attachment
    for _ in range(6):
        send(world, sam, 100, size=30_000, channel="a")
        send(world, sam, 100, size=30_000, channel="b")
    clean(world)
    (total,) = world.rows("SELECT messages + evicted FROM meta")[0]
    assert total == 1200
    ids = [row[0] for row in world.rows("SELECT id FROM messages ORDER BY id")]
    assert ids == list(range(1200 - len(ids) + 1, 1201))


def test_what_memories_fill_is_refused_with_the_way_out_and_everybody_is_warned(world):
    sam = world.register().attachment
    answers = send(world, sam, 600, size=60_000, channel="memory")
    failures = [answer.failure for answer in answers if isinstance(answer, Refused)]
    assert {failure.code for failure in failures} == {"capacity_exhausted"}
    assert "redis_budget_mib" in failures[0].message
    said = failures[0].message
    for named in ("redis_budget_mib", "memories", "the configuration", "agentbus stop"):
        assert named in said
    assert "agentbus reset" in said
    world.handle(TurnEnded())
    assert len(world.take(CapacityWarning)) == 1
    send(world, sam, 100, size=60_000, channel="memory")
    world.handle(TurnEnded())
    assert world.take(CapacityWarning) == []
    world.time += retention.WARN_SECONDS
    send(world, sam, 1, size=60_000, channel="memory")
    world.handle(TurnEnded())
    assert len(world.take(CapacityWarning)) == 1


def test_a_full_bus_still_lets_memories_be_deleted(world):
    sam = world.register().attachment
    answers = send(world, sam, 600, size=60_000, channel="memory")
    assert isinstance(answers[-1], Refused)
    assert isinstance(delete(world, sam, answers[0].memory_id), Mutated)


def test_a_full_bus_refuses_an_edit_that_does_not_fit(world):
    sam = world.register().attachment
    (made,) = send(world, sam, 1, channel="memory")
    answers = send(world, sam, 600, size=60_000, channel="memory")
    assert isinstance(answers[-1], Refused)
    refused = edit(world, sam, made.memory_id, "x" * 60_000)
    assert isinstance(refused, Refused)
    assert refused.failure.code == "capacity_exhausted"
    assert isinstance(edit(world, sam, made.memory_id, "small"), Mutated)


def test_a_small_message_still_fits_where_a_large_one_does_not(world):
    sam = world.register().attachment
    answers = send(world, sam, 600, size=60_000, channel="memory")
    assert isinstance(answers[-1], Refused)
    assert isinstance(send(world, sam, 1, size=10, channel="memory")[0], Accepted)


def test_a_measure_is_asked_for_at_every_cleanup_and_believed(world):
    sam = world.register().attachment
    send(world, sam, 100, size=60_000)
    world.take(Evicted)
    pass_time(world, 61)
    (asked,) = world.take(Evicted)
    live = counted(world)["live"]
    world.tell(WRITER_PROJECTOR, Measured(asked.round, world.core._durable, 3 * live))
    assert world.core._retention._capacity.projection(live) == pytest.approx(4 * live, rel=0.01)
    world.tell(WRITER_PROJECTOR, Measured(asked.round, world.core._durable, 9 * live))
    assert world.core._retention._capacity.projection(live) == pytest.approx(4 * live, rel=0.01)
    pass_time(world, 61)
    (asked,) = world.take(Evicted)
    world.tell(WRITER_PROJECTOR, Measured(asked.round, world.core._durable, 3 * live, True))
    assert world.core._retention._capacity.projection(live) == pytest.approx(3 * live, rel=0.01)
    (status,) = world.ask(StatusAsk(world.ref()))
    assert status.projection_bytes == pytest.approx(3 * live, rel=0.01)


def test_a_measure_is_asked_for_whenever_usage_has_changed_by_a_part_of_the_budget(world):
    sam = world.register().attachment
    clean(world)
    world.take(Evicted)
    send(world, sam, 10, size=60_000)
    clean(world)
    assert world.take(Evicted) == []
    send(world, sam, 30, size=60_000)
    clean(world)
    assert [asked.boundaries for asked in world.take(Evicted)] == [[]]
    clean(world)
    assert world.take(Evicted) == []


def test_a_measure_counts_for_what_redis_had_by_then(world):
    sam = world.register().attachment
    send(world, sam, 100, size=60_000)
    world.take(Evicted)
    pass_time(world, 61)
    asked = world.take(Evicted)[-1]
    send(world, sam, 50, size=60_000)
    then, live = world.core._durable, counted(world)["live"]
    send(world, sam, 50, size=60_000)
    world.tell(WRITER_PROJECTOR, Measured(asked.round, then, 3 * live, True))
    assert world.core._retention._capacity.projection(live) == pytest.approx(3 * live, rel=0.01)


def test_nothing_is_deleted_while_the_projection_is_not_there(world):
    sam = world.register().attachment
    send(world, sam, 5)
    world.tell(WRITER_PROJECTOR, Readiness(False, "rebuilding"))
    pass_time(world, 200 * HOUR)
    assert counted(world)["messages"] == 5


# ---- gaps


def test_gaps_add_up_to_what_was_evicted_of_others(tmp_path):
    with World(tmp_path, msgspec.structs.replace(SMALL, message_retention_hours=24)) as world:
        _check_gaps(world)


def _check_gaps(world):
    sam, pat = world.register("sam"), world.register("pat")
    for _ in range(3):
        send(world, sam.attachment, 4)
        send(world, pat.attachment, 3)
    pass_time(world, 25 * HOUR)
    for session, own in ((sam, 12), (pat, 9)):
        cursor = next(s for s in session.subscriptions if s.channel == "general")
        (told,) = world.ask(GapAsk(world.ref(), cursor.id, cursor.position))
        assert isinstance(told, GapTold)
        assert told.lost == 21 - own


# ---- accounting


def test_what_is_counted_wrong_is_corrected_after_start_and_said(world):
    sam = world.register().attachment
    send(world, sam, 50, size=100)
    with world.store.transaction():
        world.store.evictions.correct(12_345, -77)
    world.restart()
    clean(world)
    assert counted(world) == actual(world)
    (note,) = [e for e in world.effects if isinstance(e, Note)]
    assert note.action == "accounting_corrected"
    assert note.fields == {"logical": -12_345, "live": 77}


operations = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(1, 30)),
        st.tuples(st.just("memory"), st.integers(1, 5)),
        st.tuples(st.just("edit"), st.integers(0, 9)),
        st.tuples(st.just("delete"), st.integers(0, 9)),
        st.tuples(st.just("wait"), st.sampled_from([1.0, 30 * HOUR, 80 * HOUR])),
        st.tuples(st.just("restart"), st.just(0)),
        st.tuples(st.just("chunk"), st.integers(1, 3)),
    ),
    max_size=25,
)


@settings(max_examples=25, deadline=None)
@given(operations)
def test_all_counts_are_true_after_anything(tmp_path_factory, steps):
    chunk_rows, retention_chunk = 7, retention.CHUNK_ROWS
    retention.CHUNK_ROWS = chunk_rows
    try:
        with World(tmp_path_factory.mktemp("retention"), SMALL) as world:
            sam = world.register().attachment
            memories: list[str] = []
            for kind, number in steps:
                sam = _step(world, sam, memories, kind, number)
            clean(world)
            assert counted(world) == actual(world)
            assert not [e for e in world.effects if isinstance(e, Note) and "corrected" in e.action]
    finally:
        retention.CHUNK_ROWS = retention_chunk


def _step(world: World, sam: str, memories: list[str], kind: str, number: Any) -> str:
    if kind == "send":
        send(world, sam, number)
    elif kind == "memory":
        memories += [a.memory_id for a in send(world, sam, number, channel="memory")]
    elif kind == "edit" and memories:
        edit(world, sam, memories[number % len(memories)], "y" * number * 10)
    elif kind == "delete" and memories:
        delete(world, sam, memories.pop(number % len(memories)))
    elif kind == "wait":
        world.time += number
        world.handle(TurnEnded())
    elif kind == "restart":
        world.restart()
    elif kind == "chunk":
        for _ in range(number):
            world.handle(TurnEnded())
    return sam
