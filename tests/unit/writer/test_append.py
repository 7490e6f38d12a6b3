"""Sending: receipts, positions, threads, sizes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.config import Settings
from agentbus.model.ids import AttachmentId
from agentbus.model.message import WIDEST_SEQ, Message
from agentbus.wire.events import Closed, Opened, TurnEnded
from agentbus.wire.links import (
    GATEWAY_WRITER,
    WRITER_PROJECTOR,
    Accepted,
    Outcomes,
    Readiness,
    Refused,
    Release,
    StatusAsk,
    WriterHello,
)
from agentbus.writer import core
from agentbus.writer.core import HOLD_SECONDS
from tests.support.writer_world import World


@pytest.fixture(params=[64, 1], ids=["looked up", "taken to be new"])
def world(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    """Sends are looked up before, or only where they turn out not to be new."""
    monkeypatch.setattr(core, "WARY_BATCHES", request.param)
    with World(tmp_path) as made:
        yield made


def decoded(row: Any) -> Message:
    return msgspec.json.decode(row.envelope, type=Message)


def code(answer: Any) -> str:
    assert isinstance(answer, Refused), answer
    return answer.failure.code


def test_a_message_takes_the_next_position_and_is_told_to_the_projector(world: World) -> None:
    sam = world.register(agent="Sam", repository="tmi")
    (first, second) = world.ask(
        world.append(sam.attachment, "a", "one"), world.append(sam.attachment, "b", "two")
    )
    assert (first.seq, second.seq) == (1, 2)
    assert not first.duplicate
    (commit,) = world.committed()
    assert (commit.previous, commit.commit_id) == (0, 1)
    one = decoded(commit.rows[0])
    assert one == Message(
        message_id="a",
        seq=1,
        channel="general",
        sender="Sam",
        agent="Sam",
        application="codex",
        session="n1",
        sent_at=first.sent_at,
        type="message",
        content="one",
        thread="a",
        repository="tmi",
    )
    assert [row.session_id for row in commit.rows] == [sam.session_id] * 2


def test_positions_are_counted_for_each_channel_alone(world: World) -> None:
    sam = world.register(channels=["x", "y"])
    answers = world.ask(
        *(
            world.append(sam.attachment, f"m{number}", channel="xy"[number % 2])
            for number in range(6)
        )
    )
    assert [answer.seq for answer in answers] == [1, 1, 2, 2, 3, 3]


def test_answers_name_the_commit_that_makes_them_visible(world: World) -> None:
    sam = world.register()
    world.take(Outcomes)
    for message_id in ("a", "b", "a"):
        world.tell(GATEWAY_WRITER, world.append(sam.attachment, message_id))
        world.handle(TurnEnded())
    assert [batch.commit_id for batch in world.take(Outcomes)] == [1, 2, 2]


def test_a_retry_gets_the_original_facts_and_no_second_row(world: World) -> None:
    sam = world.register()
    (original,) = world.ask(world.append(sam.attachment, "a", "text"))
    world.committed()
    world.time += 100
    (again,) = world.ask(world.append(sam.attachment, "a", "text"))
    assert again == Accepted(again.ref, "a", original.seq, original.sent_at, True)
    assert world.committed() == []
    assert world.rows("SELECT count(*) FROM messages") == [(1,)]


def test_a_retry_in_the_same_turn_gets_the_same_facts(world: World) -> None:
    sam = world.register()
    first, second = world.ask(
        world.append(sam.attachment, "a", "x"), world.append(sam.attachment, "a", "x")
    )
    assert (first.seq, first.duplicate, second.seq, second.duplicate) == (1, False, 1, True)


def test_another_payload_under_a_used_id_is_a_conflict(world: World) -> None:
    sam = world.register()
    world.ask(world.append(sam.attachment, "a", "x"))
    (answer,) = world.ask(world.append(sam.attachment, "a", "y"))
    assert code(answer) == "operation_id_conflict"
    (answer,) = world.ask(world.append(sam.attachment, "a", "x", channel="memory"))
    assert code(answer) == "operation_id_conflict"


def test_another_session_under_a_used_id_is_a_conflict(world: World) -> None:
    sam, eve = world.register("n1"), world.register("n2")
    world.ask(world.append(sam.attachment, "a", "x"))
    (answer,) = world.ask(world.append(eve.attachment, "a", "x"))
    assert code(answer) == "operation_id_conflict"


def test_an_id_whose_receipt_is_gone_is_a_conflict_while_its_row_exists(world: World) -> None:
    sam = world.register()
    world.ask(world.append(sam.attachment, "a", "x"))
    with world.store.transaction():
        world.store._connection.execute("DELETE FROM receipts")
    (answer,) = world.ask(world.append(sam.attachment, "a", "x"))
    assert code(answer) == "operation_id_conflict"
    before, again, after = world.ask(
        world.append(sam.attachment, "b"),
        world.append(sam.attachment, "a", "x"),
        world.append(sam.attachment, "c"),
    )
    assert code(again) == "operation_id_conflict"
    assert (before.seq, after.seq) == (2, 3)


def test_a_resumed_session_may_retry_what_it_sent_before(world: World) -> None:
    sam = world.register()
    world.ask(world.append(sam.attachment, "a", "x"))
    world.replace_gateway()
    sam = world.register()
    (answer,) = world.ask(world.append(sam.attachment, "a", "x"))
    assert answer.duplicate


def test_an_unknown_channel_is_not_found_and_disturbs_nobody(world: World) -> None:
    sam = world.register()
    answers = world.ask(
        world.append(sam.attachment, "a"),
        world.append(sam.attachment, "b", channel="nowhere"),
        world.append(sam.attachment, "c"),
    )
    assert code(answers[1]) == "not_found"
    assert "nowhere" in answers[1].failure.message
    assert [answers[0].seq, answers[2].seq] == [1, 2]


def test_an_attachment_that_is_over_cannot_send(world: World) -> None:
    (answer,) = world.ask(world.append("9.9", "a"))
    assert code(answer) == "stale_attachment"


def test_a_memory_channel_gives_a_memory_of_revision_1(world: World) -> None:
    sam = world.register()
    (answer,) = world.ask(world.append(sam.attachment, "a", "roses are red", channel="memory"))
    assert answer.revision == 1
    assert answer.memory_id is not None
    (commit,) = world.committed()
    row = commit.rows[0]
    assert (row.memory_id, row.revision) == (answer.memory_id, 1)
    assert (decoded(row).memory_id, decoded(row).revision) == (answer.memory_id, 1)
    (again,) = world.ask(world.append(sam.attachment, "a", "roses are red", channel="memory"))
    assert (again.memory_id, again.revision, again.duplicate) == (answer.memory_id, 1, True)


def test_size_is_of_the_envelope_at_the_widest_position(tmp_path: Path) -> None:
    with World(tmp_path, Settings(max_message_kib=1)) as world:
        sam = world.register()
        world.ask(world.append(sam.attachment, "a", ""))
        (commit,) = world.committed()
        empty = msgspec.structs.replace(decoded(commit.rows[0]), seq=WIDEST_SEQ)
        room = 1024 - len(msgspec.json.encode(empty))
        fits, too_large, last = world.ask(
            world.append(sam.attachment, "b", "x" * room),
            world.append(sam.attachment, "c", "x" * (room + 1)),
            world.append(sam.attachment, "d", "x"),
        )
        assert fits.seq == 2
        assert code(too_large) == "message_too_large"
        assert "1025 bytes" in too_large.failure.message
        assert "1 KiB" in too_large.failure.message
        assert last.seq == 3
        (again,) = world.ask(world.append(sam.attachment, "c", "x"))
        assert not again.duplicate


def test_bytes_count_and_not_characters(tmp_path: Path) -> None:
    with World(tmp_path, Settings(max_message_kib=1)) as world:
        sam = world.register()
        (answer,) = world.ask(world.append(sam.attachment, "a", "é" * 500))
        assert code(answer) == "message_too_large"


def test_content_survives(world: World) -> None:
    sam = world.register()
    texts = ["", "😀 e\u0301", "שלום", 'a\u2028b\u0000\x1f\\"', "C:\\x\\y"]
    world.ask(
        *(world.append(sam.attachment, f"m{n}", text) for n, text in enumerate(texts)),
        world.append(
            sam.attachment, "meta", "x", metadata={"a": 1.5, "b": None, "c": "d", "e": False}
        ),
    )
    rows = [decoded(row) for commit in world.committed() for row in commit.rows]
    assert [row.content for row in rows[:-1]] == texts
    assert rows[-1].metadata == {"a": 1.5, "b": None, "c": "d", "e": False}


def test_a_reply_belongs_to_its_roots_thread(world: World) -> None:
    sam = world.register()
    world.ask(
        world.append(sam.attachment, "root"),
        world.append(sam.attachment, "reply", reply_to="root"),
        world.append(sam.attachment, "deeper", reply_to="reply"),
    )
    threads = [decoded(row).thread for commit in world.committed() for row in commit.rows]
    assert threads == ["root", "root", "root"]


def test_roots_replies_and_memories_of_one_turn_are_stored_with_all_that_they_have(
    world: World,
) -> None:
    sam = world.register().attachment
    answers = world.ask(
        world.append(sam, "root"),
        world.append(sam, "reply", reply_to="root"),
        world.append(sam, "memory", channel="memory"),
        world.append(sam, "other"),
        world.append(sam, "to memory", channel="memory", reply_to="reply"),
        world.append(sam, "own", reply_to="own"),
    )
    memory, replied = answers[2].memory_id, answers[4].memory_id
    columns = "id, message_id, thread, reply_to, memory_id, revision, tombstone"
    assert world.rows(f"SELECT {columns} FROM messages ORDER BY id") == [
        (1, "root", None, None, None, None, 0),
        (2, "reply", "root", "root", None, None, 0),
        (3, "memory", None, None, memory, 1, 0),
        (4, "other", None, None, None, None, 0),
        (5, "to memory", "root", "reply", replied, 1, 0),
        (6, "own", None, "own", None, None, 0),
    ]
    assert world.rows(
        "SELECT id, operation_id, memory_id, revision, replaced FROM receipts ORDER BY id"
    ) == [
        (1, "root", None, None, None),
        (2, "reply", None, None, None),
        (3, "memory", memory, 1, None),
        (4, "other", None, None, None),
        (5, "to memory", replied, 1, None),
        (6, "own", None, None, None),
    ]


def test_a_thread_is_found_by_a_writer_that_starts_later(world: World) -> None:
    sam = world.register()
    world.ask(world.append(sam.attachment, "root"))
    world.ask(world.append(sam.attachment, "reply", reply_to="root"))
    world.restart()
    world.committed()
    world.ask(world.append(sam.attachment, "deeper", reply_to="reply"))
    (commit,) = world.committed()
    assert decoded(commit.rows[0]).thread == "root"


def test_a_reply_to_what_is_not_known_starts_that_ones_thread(world: World) -> None:
    sam = world.register()
    world.ask(
        world.append(sam.attachment, "a", reply_to="gone"),
        world.append(sam.attachment, "b", reply_to="a"),
    )
    threads = [decoded(row).thread for commit in world.committed() for row in commit.rows]
    assert threads == ["gone", "gone"]


def test_more_threads_than_are_remembered_are_still_found(world: World) -> None:
    sam = world.register()
    world.ask(world.append(sam.attachment, "root"))
    world.ask(world.append(sam.attachment, "reply", reply_to="root"))
    state = world.core._loaded()
    for number in range(5000):
        state.remember_thread(f"x{number}", "y")
    assert "reply" not in state.threads
    assert len(state.threads) <= 4096
    world.committed()
    world.ask(world.append(sam.attachment, "deeper", reply_to="reply"))
    assert decoded(world.committed()[0].rows[0]).thread == "root"


def test_the_time_of_sending_never_goes_back(world: World) -> None:
    sam = world.register()
    world.time = 50.0
    (early,) = world.ask(world.append(sam.attachment, "a"))
    world.time = 20.0
    (late,) = world.ask(world.append(sam.attachment, "b"))
    assert late.sent_at == early.sent_at
    world.restart()
    (later,) = world.ask(world.append(sam.attachment, "c"))
    assert later.sent_at == early.sent_at


@pytest.mark.parametrize("event", [Closed(WRITER_PROJECTOR), Opened(WRITER_PROJECTOR)])
def test_nothing_is_taken_until_the_projector_on_this_link_is_ready(
    world: World, event: Closed | Opened
) -> None:
    sam = world.register()
    world.ask(world.append(sam.attachment, "a", "x"))
    world.handle(event)
    refused, retry = world.ask(
        world.append(sam.attachment, "b"), world.append(sam.attachment, "a", "x")
    )
    assert code(refused) == "recovering"
    assert code(retry) == "recovering"
    world.tell(WRITER_PROJECTOR, Readiness(True, ""))
    (answer,) = world.ask(world.append(sam.attachment, "b"))
    assert answer.seq == 2


def restarted_before_its_projector(world: World) -> str:
    """A session of a writer that was killed; its successor has not heard the projection yet."""
    sam = world.register()
    world.ask(world.append(sam.attachment, "a", "x"))
    world.restart(ready=False)
    return sam.attachment


def test_sends_caught_by_a_restart_wait_for_the_projection_in_their_order(world: World) -> None:
    attachment = restarted_before_its_projector(world)
    early = Release(world.ref(), AttachmentId("1.9"))
    late = StatusAsk(world.ref())
    sends = [world.append(attachment, "a", "x"), world.append(attachment, "b")]
    assert [answer.ref for answer in world.ask(early, *sends, late)] == [early.ref]
    world.tell(WRITER_PROJECTOR, Readiness(False, "reading commits that were missed"))
    assert world.ask() == []
    world.tell(WRITER_PROJECTOR, Readiness(True, ""))
    again, anew, told = world.ask()
    assert (again.duplicate, again.seq) == (True, 1)
    assert (anew.duplicate, anew.seq) == (False, 2)
    assert told.ref == late.ref


def test_sends_do_not_wait_for_a_projection_that_does_not_get_ready(world: World) -> None:
    attachment = restarted_before_its_projector(world)
    assert world.ask(world.append(attachment, "b")) == []
    assert world.wake()
    assert world.time == HOLD_SECONDS
    assert [code(answer) for answer in world.answers()] == ["recovering"]
    (answer,) = world.ask(world.append(attachment, "b"))
    assert code(answer) == "recovering"


def test_a_projector_that_says_it_is_not_ready_says_why(world: World) -> None:
    sam = world.register()
    world.tell(WRITER_PROJECTOR, Readiness(False, "rebuilding"))
    (answer,) = world.ask(world.append(sam.attachment, "a"))
    assert "rebuilding" in answer.failure.message


def test_a_projector_is_greeted_with_the_newest_commit(world: World) -> None:
    sam = world.register()
    world.ask(world.append(sam.attachment, "a"))
    world.take(WriterHello)
    world.handle(Closed(WRITER_PROJECTOR))
    world.handle(Opened(WRITER_PROJECTOR))
    (hello,) = world.take(WriterHello)
    assert hello.commit_id == 1
    assert hello.instance == world.greet().instance


_turns = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["s1", "s2"]), st.sampled_from("abcd"), st.sampled_from("xy")),
        max_size=6,
    ),
    max_size=6,
)


@given(turns=_turns, restarts=st.sets(st.integers(0, 5)), wary=st.sampled_from([1, 2, 64]))
def test_any_retries_make_one_row_an_id_with_one_set_of_facts(
    turns: list[list[tuple[str, str, str]]], restarts: set[int], wary: int
) -> None:
    with (
        patch.object(core, "WARY_BATCHES", wary),
        tempfile.TemporaryDirectory() as directory,
        World(Path(directory)) as world,
    ):
        attachments = {name: world.register(name).attachment for name in ("s1", "s2")}
        owners: dict[str, tuple[str, str]] = {}
        facts: dict[str, tuple[int, str]] = {}
        for number, turn in enumerate(turns):
            if number in restarts:
                world.restart()
            world.time += 1
            answers = world.ask(
                *(
                    world.append(attachments[name], message_id, text)
                    for name, message_id, text in turn
                )
            )
            for (name, message_id, text), answer in zip(turn, answers, strict=True):
                owner = owners.setdefault(message_id, (name, text))
                if owner != (name, text):
                    assert code(answer) == "operation_id_conflict"
                    continue
                assert answer.duplicate == (message_id in facts)
                known = facts.setdefault(message_id, (answer.seq, answer.sent_at))
                assert known == (answer.seq, answer.sent_at)
        assert sorted(seq for seq, _ in facts.values()) == list(range(1, len(facts) + 1))
        stored = world.rows("SELECT message_id, seq FROM messages ORDER BY seq")
        assert dict(stored) == {message_id: seq for message_id, (seq, _) in facts.items()}
        assert len(stored) == len(facts)
