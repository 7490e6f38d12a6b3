"""What is committed when, and who is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentbus import sqlite
from agentbus.errors import DatabaseDamaged, StorageFailed
from agentbus.runtime import exits
from agentbus.runtime.faults import Point, no_fault
from agentbus.sqlite import Busy
from agentbus.store.write.rows import Rows
from agentbus.wire.events import Closed, Note, Opened, Send, TurnEnded, WakeAt
from agentbus.wire.links import (
    CONTROL,
    GATEWAY_WRITER,
    WRITER_PROJECTOR,
    Accepted,
    Applied,
    ChannelCreate,
    ChannelOpened,
    Committed,
    Failing,
    Hindered,
    Outcomes,
    Refused,
    Release,
    StatusAsk,
    Stop,
    Welcome,
    WriterStatus,
)
from agentbus.writer import core, identity, tidy
from agentbus.writer.core import RETRY_SECONDS
from agentbus.writer.troubles import LOCKED_SECONDS
from tests.support.writer_world import World


def failing(error: Exception) -> Any:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


def test_everything_of_a_turn_is_one_commit_and_one_frame_of_answers(world: World) -> None:
    sam = world.register()
    world.take(Outcomes)
    operations = [world.append(sam.attachment, f"m{n}") for n in range(200)]
    world.tell(GATEWAY_WRITER, *operations)
    assert world.sent == []
    world.handle(TurnEnded())
    (outcomes,) = world.take(Outcomes)
    assert [answer.ref for answer in outcomes.outcomes] == [op.ref for op in operations]
    (commit,) = world.committed()
    assert len(commit.rows) == 200


def test_more_than_a_batch_follows_at_once_after_the_answers(world: World) -> None:
    sam = world.register()
    world.tell(GATEWAY_WRITER, *(world.append(sam.attachment, f"m{n}") for n in range(600)))
    world.handle(TurnEnded())
    assert len(world.answers()) == 256
    assert world.wake()
    assert world.time == 0.0
    world.wake()
    assert len(world.answers()) == 344
    commits = world.committed()
    assert [(c.previous, c.commit_id, len(c.rows)) for c in commits] == [
        (0, 1, 256),
        (1, 2, 256),
        (2, 3, 88),
    ]


def test_a_commit_of_large_messages_is_cut_at_4_mib(world: World) -> None:
    sam = world.register()
    answers = world.ask(*(world.append(sam.attachment, f"m{n}", "x" * 60_000) for n in range(100)))
    assert [answer.seq for answer in answers] == list(range(1, 101))
    sizes = [sum(len(row.envelope) for row in commit.rows) for commit in world.committed()]
    assert len(sizes) == 2
    assert 4 * 2**20 <= sizes[0] <= 4 * 2**20 + 61_000


def test_commits_without_message_rows_have_no_number_and_no_frame(world: World) -> None:
    sam = world.register()
    world.ask(world.append(sam.attachment, "a", "x"))
    world.committed()
    world.ask(ChannelCreate(world.ref(), sam.attachment, "c", "ordinary"))
    world.ask(world.append(sam.attachment, "a", "x"))
    world.ask(world.append(sam.attachment, "b"))
    (commit,) = world.committed()
    assert (commit.previous, commit.commit_id) == (1, 2)


def test_the_gateway_is_told_before_the_projector_and_channels_before_answers(
    world: World,
) -> None:
    sam = world.register()
    world.sent.clear()
    world.ask(
        ChannelCreate(world.ref(), sam.attachment, "c", "ordinary"),
        world.append(sam.attachment, "a", channel="c"),
    )
    world.tell(
        GATEWAY_WRITER,
        ChannelCreate(world.ref(), sam.attachment, "d", "ordinary"),
        world.append(sam.attachment, "b", channel="d"),
    )
    world.sent.clear()
    world.handle(TurnEnded())
    assert [(send.link, type(send.message)) for send in world.sent] == [
        (GATEWAY_WRITER, ChannelOpened),
        (GATEWAY_WRITER, Outcomes),
        (WRITER_PROJECTOR, Committed),
    ]


def test_a_gateway_without_a_number_gets_a_new_one_and_all_channels(world: World) -> None:
    sam = world.register()
    world.ask(
        world.append(sam.attachment, "a"),
        ChannelCreate(world.ref(), sam.attachment, "c", "memory"),
    )
    assert world.incarnation == 1
    welcome = world.replace_gateway()
    assert (welcome.incarnation, welcome.commit_id) == (2, 1)
    assert [(c.name, c.kind, c.last_seq) for c in welcome.channels] == [
        ("general", "ordinary", 1),
        ("memory", "memory", 0),
        ("c", "memory", 0),
    ]
    assert world.replace_gateway().incarnation == 3


def test_a_gateway_that_greets_a_restarted_writer_keeps_its_number(world: World) -> None:
    instance = world.greet().instance
    world.restart()
    welcome = world.greet()
    assert (welcome.incarnation, welcome.instance) == (1, instance)


def test_a_gateway_with_a_number_nobody_gave_out_gets_a_new_one(world: World) -> None:
    sam = world.register()
    world.incarnation = 77
    assert world.greet().incarnation == 2
    (answer,) = world.ask(world.append(sam.attachment, "a"))
    assert answer.failure.code == "stale_attachment"


def test_what_a_dead_gateway_asked_for_is_done_and_not_answered(world: World) -> None:
    sam = world.register()
    world.answers()
    world.tell(GATEWAY_WRITER, world.append(sam.attachment, "a"))
    world.handle(Closed(GATEWAY_WRITER))
    assert world.take(Outcomes) == []
    assert len(world.committed()) == 1


def test_orphans_that_wait_for_a_lock_are_not_answered_to_the_next_gateway(world: World) -> None:
    sam = world.register()
    world.answers()
    other = sqlite.open_writer(world.path, synchronous="full", application_id=0x61627573)
    other.execute("BEGIN IMMEDIATE")
    world.tell(
        GATEWAY_WRITER,
        world.append(sam.attachment, "a"),
        ChannelCreate(world.ref(), sam.attachment, "c", "ordinary"),
    )
    world.handle(Closed(GATEWAY_WRITER))
    world.handle(Opened(GATEWAY_WRITER))
    world.tell(GATEWAY_WRITER, core.GatewayHello(0))
    world.handle(TurnEnded())
    assert world.sent == []
    other.close()
    world.sent.clear()
    while not world.take(Welcome):
        assert [send for send in world.sent if send.link == GATEWAY_WRITER] == []
        assert world.wake()
    assert world.rows("SELECT count(*) FROM messages") == [(1,)]


def test_a_locked_database_is_tried_again_and_nothing_is_lost(world: World) -> None:
    sam = world.register()
    other = sqlite.open_writer(world.path, synchronous="full", application_id=0x61627573)
    other.execute("BEGIN IMMEDIATE")
    assert world.ask(world.append(sam.attachment, "a")) == []
    for _ in range(100):
        before = world.time
        assert world.wake()
        assert world.time <= before + RETRY_SECONDS + 1e-9
        assert world.answers() == []
    world.handle(TurnEnded())
    other.execute("ROLLBACK")
    other.close()
    world.wake()
    (answer,) = world.answers()
    assert answer.seq == 1
    assert world.effects == []


def test_a_failed_commit_takes_back_all_numbers_and_answers_everybody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sam = world.register()
    with monkeypatch.context() as patch:
        patch.setattr(world.store.rows, "append", failing(StorageFailed("the disk is full")))
        answers = world.ask(
            world.append(sam.attachment, "a"),
            ChannelCreate(world.ref(), sam.attachment, "c", "ordinary"),
            world.registration("n2"),
            Release(world.ref(), sam.attachment),
            world.append(sam.attachment, "b"),
        )
    assert [answer.failure.code for answer in answers] == ["storage_error"] * 5
    assert world.committed() == []
    assert world.take(ChannelOpened) == []
    assert [note.action for note in world.effects] == ["commit_failed"]
    (answer,) = world.ask(world.append(sam.attachment, "a"))
    assert (answer.seq, answer.duplicate) == (1, False)
    (commit,) = world.committed()
    assert (commit.previous, commit.commit_id) == (0, 1)
    assert world.rows("SELECT count(*) FROM channels") == [(2,)]
    assert world.register("n2").session_id == sam.session_id + 1


def test_a_state_that_cannot_be_read_again_is_a_failure_as_well(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sam = world.register()
    with monkeypatch.context() as patch:
        patch.setattr(world.store.rows, "append", failing(StorageFailed("no")))
        patch.setattr(world.store.bus, "meta", failing(StorageFailed("no")))
        for _ in range(3):
            (answer,) = world.ask(world.append(sam.attachment, "a"))
            assert answer.failure.code == "storage_error"
    assert isinstance(world.ask(world.append(sam.attachment, "a"))[0], Accepted)


def test_a_greeting_that_fails_is_tried_until_it_works(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(world.store.bus, "next_incarnation", failing(StorageFailed("no")))
        world.handle(Closed(GATEWAY_WRITER))
        world.handle(Opened(GATEWAY_WRITER))
        world.tell(GATEWAY_WRITER, core.GatewayHello(0))
        world.handle(TurnEnded())
        world.wake()
        assert world.take(Welcome) == []
    (told,) = world.take(Hindered)
    assert told.failure.message == "no"
    world.time += 1
    world.wake()
    world.wake()
    assert world.take(Welcome)[0].incarnation == 2


def test_what_another_program_locks_for_long_is_refused_and_stored_nowhere(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sam = world.register()
    with monkeypatch.context() as patch:
        patch.setattr(world.store.rows, "append", failing(Busy("locked")))
        world.tell(GATEWAY_WRITER, world.append(sam.attachment, "a"))
        world.handle(TurnEnded())
        for _ in range(3):
            world.time += LOCKED_SECONDS / 3 - 0.1
            assert world.wake()
            assert world.answers() == []
        world.time += 1
        assert world.wake()
        (refused,) = world.answers()
        assert refused.failure.code == "storage_error"
        world.time += 0.1
        (at_once,) = world.ask(world.append(sam.attachment, "b"))
        assert at_once.failure.code == "storage_error"
    assert world.rows("SELECT count(*) FROM messages") == [(0,)]
    world.time += 0.1
    (accepted,) = world.ask(world.append(sam.attachment, "a"))
    assert (accepted.seq, accepted.duplicate) == (1, False)


def test_damage_found_later_ends_the_daemon_with_the_reason(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sam = world.register()
    monkeypatch.setattr(world.store.rows, "append", failing(DatabaseDamaged("malformed")))
    (answer,) = world.ask(world.append(sam.attachment, "a"))
    assert answer.failure.code == "database_damaged"
    (failing_frame,) = world.take(Failing)
    assert failing_frame.failure.code == "database_damaged"
    assert world.exits == [exits.FAILING]


def test_an_operation_that_meets_a_bug_harms_nobody_else(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sam = world.register()
    monkeypatch.setattr(identity, "base_name", failing(ZeroDivisionError("bug")))
    answers = world.ask(
        world.append(sam.attachment, "a"),
        world.registration("n2"),
        world.append(sam.attachment, "b"),
    )
    assert [type(answer) for answer in answers] == [Accepted, Refused, Accepted]
    assert answers[1].failure.code == "internal"
    assert [answers[0].seq, answers[2].seq] == [1, 2]
    notes = [effect for effect in world.effects if isinstance(effect, Note)]
    assert [note.action for note in notes] == ["batch_taken_apart", "operation_crashed"]
    (one, two) = world.ask(world.append(sam.attachment, "c"), world.append(sam.attachment, "d"))
    assert (one.seq, two.seq) == (3, 4)
    assert len(world.committed()) == 3


def test_an_orderly_stop_commits_and_answers_what_is_queued_then_exits(world: World) -> None:
    sam = world.register()
    world.tell(GATEWAY_WRITER, *(world.append(sam.attachment, f"m{n}") for n in range(300)))
    world.tell(CONTROL, Stop())
    world.handle(TurnEnded())
    while not world.exits:
        assert world.wake()
    assert len(world.answers()) == 300
    assert world.exits == [exits.OK]
    assert world.store.wal_bytes() == 0
    assert world.rows("SELECT count(*) FROM messages") == [(300,)]


def test_an_orderly_stop_waits_a_little_for_the_gateways_last_words(world: World) -> None:
    sam = world.register()
    world.tell(CONTROL, Stop())
    world.handle(TurnEnded())
    assert world.exits == []
    world.tell(GATEWAY_WRITER, world.append(sam.attachment, "a"))
    world.handle(TurnEnded())
    assert world.exits == []
    world.handle(Closed(GATEWAY_WRITER))
    assert world.exits == [exits.OK]
    assert world.rows("SELECT count(*) FROM messages") == [(1,)]


def test_a_stop_waits_for_a_lock(world: World) -> None:
    sam = world.register()
    other = sqlite.open_writer(world.path, synchronous="full", application_id=0x61627573)
    other.execute("BEGIN IMMEDIATE")
    world.tell(GATEWAY_WRITER, world.append(sam.attachment, "a"))
    world.stop()
    assert world.exits == []
    other.close()
    while not world.exits:
        assert world.wake()
    assert world.rows("SELECT count(*) FROM messages") == [(1,)]


def test_a_writer_killed_between_commit_and_answer_leaves_what_a_retry_finds(
    world: World,
) -> None:
    class Killed(BaseException):
        pass

    def die(point: Point) -> None:
        if point is Point.COMMITTED:
            raise Killed

    sam = world.register()
    operations = [world.append(sam.attachment, f"m{n}") for n in range(3)]
    world.fault = die
    with pytest.raises(Killed):
        world.ask(*operations)
    world.fault = no_fault
    world.answers()
    world.restart()
    answers = world.ask(*operations)
    assert [(answer.seq, answer.duplicate) for answer in answers] == [
        (1, True),
        (2, True),
        (3, True),
    ]
    assert world.committed() == []


def test_status_counts_what_the_batch_did_before_it(world: World) -> None:
    sam = world.register("n1", agent="Sam")
    eve = world.register("n2", agent="Eve")
    world.ask(Release(world.ref(), eve.attachment))
    *_, status = world.ask(
        world.append(sam.attachment, "a"),
        world.append(sam.attachment, "b", channel="memory"),
        StatusAsk(world.ref()),
    )
    assert isinstance(status, WriterStatus)
    assert (status.messages, status.memories, status.receipts) == (1, 1, 2)
    assert (status.tombstones, status.evicted, status.commit_id) == (0, 0, 1)
    assert (status.path, status.synchronous) == (world.path, "normal")
    assert status.wal_bytes > 0
    assert [(row.display_name, row.attachment is None) for row in status.sessions] == [
        ("Sam", False),
        ("Eve", True),
    ]
    assert [info.channel for info in status.sessions[1].subscriptions] == ["general", "memory"]
    envelopes = sum(len(row.envelope) for row in world.committed()[0].rows)
    assert envelopes < status.logical_bytes < envelopes + 1000


def test_what_concerns_others_is_passed_over(world: World) -> None:
    world.tell(WRITER_PROJECTOR, Applied(3))  # type: ignore[arg-type]
    world.handle(Closed(CONTROL))
    assert world.effects == []


def test_wake_ups_are_not_asked_for_again_and_again(world: World) -> None:
    sam = world.register()
    asked = []
    for number in range(20):
        world.time += 0.001
        world.tell(GATEWAY_WRITER, world.append(sam.attachment, f"m{number}"))
        effects = world.core.handle(TurnEnded(), world.now())
        asked += [effect for effect in effects if not isinstance(effect, Send)]
    assert asked == [WakeAt(0.001 + tidy.RETRY_SECONDS)]


def test_sends_are_looked_up_for_a_while_and_then_taken_to_be_new_until_one_is_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    receipts = Rows.receipts

    def counted(self: Rows, operation_ids: list[str]) -> Any:
        asked.append(list(operation_ids))
        return receipts(self, operation_ids)

    monkeypatch.setattr(Rows, "receipts", counted)
    sam = world.register().attachment

    def send(*names: str) -> list[Any]:
        asked.clear()
        return world.ask(*(world.append(sam, name) for name in names))

    for number in range(core.WARY_BATCHES):
        send(f"a{number}")
    send("b", "c")
    assert asked == []
    again = send("d", "a3", "e")
    assert [answer.duplicate for answer in again] == [False, True, False]
    assert asked == [["d", "a3", "e"]]
    for number in range(core.WARY_BATCHES):
        send(f"f{number}")
        assert asked == [[f"f{number}"]]
    send("g")
    assert asked == []
    committed = [row for commit in world.committed() for row in commit.rows]
    assert [row.seq for row in committed] == list(range(1, len(committed) + 1))
    assert len(committed) == 2 * core.WARY_BATCHES + 5


@pytest.mark.parametrize("refused", [False, True])
def test_who_repeats_for_ever_has_no_batch_rolled_back_but_the_first(
    world: World, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    loads: list[Any] = []

    class Counted(core.State):
        def __init__(self, store: Any) -> None:
            loads.append(store)
            super().__init__(store)

    sam = world.register().attachment
    for number in range(core.WARY_BATCHES):
        world.ask(world.append(sam, f"a{number}"))
    monkeypatch.setattr(core, "State", Counted)
    for _ in range(3 * core.WARY_BATCHES):
        (answer,) = world.ask(world.append(sam, "a1", "another" if refused else "hello"))
        assert isinstance(answer, Refused) if refused else answer.duplicate
    assert len(loads) == 1


def test_rows_are_looked_up_once_a_batch(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    sam = world.register()
    calls: list[int] = []
    original = Rows.receipts
    monkeypatch.setattr(
        Rows, "receipts", lambda self, ids: calls.append(len(ids)) or original(self, ids)
    )
    world.ask(*(world.append(sam.attachment, f"m{n}") for n in range(100)))
    assert calls == [100]


def test_a_new_bus_needs_no_help(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        assert world.rows("SELECT count(*) FROM meta") == [(1,)]
        assert world.rows("SELECT name, kind FROM channels") == [
            ("general", "ordinary"),
            ("memory", "memory"),
        ]
