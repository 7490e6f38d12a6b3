"""Editing and deleting memories."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.config import Settings
from agentbus.model.ids import AttachmentId
from agentbus.model.message import Message, Reference
from agentbus.store.read import Reader
from agentbus.wire.events import TurnEnded
from agentbus.wire.links import (
    GATEWAY_WRITER,
    WRITER_PROJECTOR,
    Accepted,
    MemoryChanged,
    MemoryDelete,
    MemoryEdit,
    Mutated,
    Outcomes,
    Readiness,
    Refused,
    Registered,
    Release,
    Tombstoned,
)
from tests.support.writer_world import World


def decoded(envelope: bytes | None) -> Message:
    assert envelope is not None
    return msgspec.json.decode(envelope, type=Message)


def code(answer: Any) -> str:
    assert isinstance(answer, Refused), answer
    return answer.failure.code


def made(world: World, sam: Registered, text: str = "roses are red", **fields: Any) -> str:
    message_id = f"made-{world.ref()}"
    (answer,) = world.ask(
        world.append(sam.attachment, message_id, text, channel="memory", **fields)
    )
    assert isinstance(answer, Accepted)
    assert answer.memory_id is not None
    world.committed()
    return answer.memory_id


def edit(world: World, sam: Registered, memory_id: str, name: str, text: str, **rest: Any) -> Any:
    mark = f"{memory_id} {text} {rest}".encode()
    return MemoryEdit(world.ref(), sam.attachment, memory_id, name, mark, text, **rest)


def delete(world: World, sam: Registered, memory_id: str, name: str) -> MemoryDelete:
    return MemoryDelete(world.ref(), sam.attachment, memory_id, name, memory_id.encode())


def test_an_edit_makes_the_next_revision_and_names_the_one_it_replaced(world: World) -> None:
    sam, eve = world.register("n1", agent="Sam"), world.register("n2", agent="Eve")
    memory = made(world, sam)
    world.time += 1
    (answer,) = world.ask(edit(world, eve, memory, "e1", "roses are blue"))
    assert answer == Mutated(answer.ref, memory, 2, 1, False)
    (commit,) = world.committed()
    (row,) = commit.rows
    assert (row.memory_id, row.revision, row.seq) == (memory, 2, 1)
    assert row.session_id == sam.session_id, "the stream's entry is its creator's"
    assert commit.tombstones == [Tombstoned(row.channel_id, memory, row.seq, 1)]
    assert (commit.previous, commit.commit_id) == (1, 2)
    new = decoded(row.envelope)
    assert (new.message_id, new.content, new.sender) == ("e1", "roses are blue", "Eve")
    assert (new.memory_id, new.revision, new.seq, new.channel) == (memory, 2, 1, "memory")


def test_the_replaced_revision_keeps_its_content_as_a_tombstone(world: World) -> None:
    sam = world.register()
    memory = made(world, sam)
    world.ask(edit(world, sam, memory, "e1", "roses are blue"))
    old, new = world.rows(
        "SELECT revision, tombstone, tombstoned_at, tombstone_commit_id, envelope FROM messages "
        "WHERE memory_id = ? ORDER BY revision",
        memory,
    )
    assert old[:4] == (1, 1, world.milliseconds, 2)
    assert decoded(old[4]).content == "roses are red"
    assert new[:4] == (2, 0, None, None)


def test_the_change_is_told_before_its_answer(world: World) -> None:
    sam, eve = world.register("n1"), world.register("n2")
    memory = made(world, sam)
    world.sent.clear()
    world.tell(GATEWAY_WRITER, edit(world, eve, memory, "e1", "blue"))
    world.tell(GATEWAY_WRITER, delete(world, eve, memory, "d1"))
    world.handle(TurnEnded())
    told = [send.message for send in world.sent if send.link == GATEWAY_WRITER]
    assert [type(message) for message in told] == [MemoryChanged, MemoryChanged, Outcomes]
    changed, deleted, outcomes = told
    assert (changed.memory_id, changed.revision, changed.seq) == (memory, 2, 1)
    assert decoded(changed.envelope).content == "blue"
    assert changed.session_id == eve.session_id
    assert (deleted.revision, deleted.envelope, deleted.seq) == (2, None, 1)
    assert changed.commit_id == deleted.commit_id == outcomes.commit_id == 2


def test_last_commit_wins_whatever_the_editor_had_seen(world: World) -> None:
    sam, eve = world.register("n1"), world.register("n2")
    memory = made(world, sam)
    answers = world.ask(
        edit(world, sam, memory, "a", "one"),
        edit(world, eve, memory, "b", "two"),
        edit(world, sam, memory, "c", "three"),
    )
    assert [(answer.revision, answer.replaced_revision) for answer in answers] == [
        (2, 1),
        (3, 2),
        (4, 3),
    ]
    (commit,) = world.committed()
    assert [decoded(row.envelope).content for row in commit.rows] == ["three"]
    assert [tombstone.revision for tombstone in commit.tombstones] == [1, 2, 3]


def test_a_memory_made_and_edited_in_one_commit_stands_at_its_creations_place(
    world: World,
) -> None:
    sam = world.register()
    world.tell(GATEWAY_WRITER, world.append(sam.attachment, "m1", "one", channel="memory"))
    memory = f"{int(world.tokens.token(), 16) + 1:032x}"  # the next one that is drawn
    answers = world.ask(
        edit(world, sam, memory, "e1", "two"),
        world.append(sam.attachment, "m2", "other", channel="memory"),
        edit(world, sam, memory, "e2", "three"),
    )
    assert answers[0].memory_id == memory
    assert [answer.ref for answer in answers if isinstance(answer, Refused)] == []
    (commit,) = world.committed()
    assert [(row.seq, row.revision) for row in commit.rows] == [(1, 3), (2, 1)]
    assert decoded(commit.rows[0].envelope).content == "three"


def test_a_memory_made_and_deleted_in_one_commit_leaves_a_tombstone_alone(world: World) -> None:
    sam = world.register()
    world.tell(GATEWAY_WRITER, world.append(sam.attachment, "m1", "one", channel="memory"))
    memory = f"{int(world.tokens.token(), 16) + 1:032x}"
    world.ask(delete(world, sam, memory, "d1"))
    (commit,) = world.committed()
    assert commit.rows == []
    assert [(row.memory_id, row.revision) for row in commit.tombstones] == [(memory, 1)]


def test_what_an_edit_does_not_say_stays_and_what_is_empty_is_cleared(world: World) -> None:
    sam = world.register()
    reference = Reference("url", "https://example.org/a")
    memory = made(
        world, sam, type="note", metadata={"k": 1}, references=[reference], reply_to="root"
    )
    world.ask(edit(world, sam, memory, "e1", "one"))
    kept = decoded(world.committed()[0].rows[0].envelope)
    assert (kept.type, kept.metadata, kept.references) == ("note", {"k": 1}, [reference])
    assert (kept.thread, kept.reply_to) == ("root", "root")
    world.ask(edit(world, sam, memory, "e2", "two", message_type="plan", metadata={"k": 2}))
    changed = decoded(world.committed()[0].rows[0].envelope)
    assert (changed.type, changed.metadata, changed.references) == ("plan", {"k": 2}, [reference])
    cleared = {"message_type": "", "metadata": {}, "references": []}
    world.ask(edit(world, sam, memory, "e3", "three", **cleared))
    empty = decoded(world.committed()[0].rows[0].envelope)
    assert (empty.type, empty.metadata, empty.references) == ("message", None, None)


def test_a_reply_to_any_revision_belongs_to_the_creations_thread(world: World) -> None:
    sam = world.register()
    (answer,) = world.ask(world.append(sam.attachment, "root", "x", channel="memory"))
    world.ask(edit(world, sam, answer.memory_id, "e1", "y"))
    world.committed()
    world.restart()
    world.ask(world.append(sam.attachment, "reply", reply_to="e1"))
    assert decoded(world.committed()[0].rows[0].envelope).thread == "root"


def test_a_delete_tombstones_the_current_revision(world: World) -> None:
    sam = world.register()
    memory = made(world, sam)
    world.ask(edit(world, sam, memory, "e1", "blue"))
    world.committed()
    (answer,) = world.ask(delete(world, sam, memory, "d1"))
    assert answer == Mutated(answer.ref, memory, None, 2, False)
    (commit,) = world.committed()
    assert commit.rows == []
    assert [row.revision for row in commit.tombstones] == [2]
    assert (commit.previous, commit.commit_id) == (2, 3)
    assert world.rows("SELECT count(*) FROM messages WHERE tombstone = 0") == [(0,)]
    assert world.rows("SELECT memories, tombstones, messages FROM meta") == [(0, 2, 0)]


def test_a_deleted_or_unknown_memory_is_not_found_and_nothing_is_left(world: World) -> None:
    sam = world.register()
    memory = made(world, sam)
    world.ask(delete(world, sam, memory, "d1"))
    world.committed()
    answers = world.ask(
        edit(world, sam, memory, "e1", "again"),
        delete(world, sam, memory, "d2"),
        edit(world, sam, "never", "e2", "x"),
        delete(world, sam, "never", "d3"),
    )
    assert [code(answer) for answer in answers] == ["not_found"] * 4
    assert world.committed() == []
    assert world.rows("SELECT count(*) FROM receipts WHERE operation_id LIKE 'e%'") == [(0,)]
    (answer,) = world.ask(edit(world, sam, made(world, sam), "e1", "the id is free"))
    assert answer.revision == 2


@pytest.mark.parametrize("dies", [False, True])
def test_a_retry_gets_the_original_answer_and_changes_nothing(world: World, dies: bool) -> None:
    sam = world.register()
    memory, other = made(world, sam), made(world, sam)
    operations = edit(world, sam, memory, "e1", "blue"), delete(world, sam, other, "d1")
    first = world.ask(*operations)
    world.committed()
    world.take(MemoryChanged)
    if dies:
        world.restart()
    again = world.ask(*operations)
    assert [answer.duplicate for answer in again] == [True, True]
    assert [msgspec.structs.replace(answer, duplicate=False) for answer in again] == first
    assert world.committed() == []
    told = world.take(MemoryChanged)
    assert [(change.memory_id, change.revision) for change in told] == [(memory, 2), (other, 1)]
    assert [change.envelope is None for change in told] == [False, True]
    assert {change.commit_id for change in told} == {3}, "one that is there"


def test_a_retry_of_what_was_replaced_since_tells_no_old_revision(world: World) -> None:
    sam = world.register()
    memory = made(world, sam)
    operation = edit(world, sam, memory, "e1", "blue")
    world.ask(operation)
    world.ask(edit(world, sam, memory, "e2", "green"))
    world.take(MemoryChanged)
    (again,) = world.ask(operation)
    assert (again.revision, again.replaced_revision, again.duplicate) == (2, 1, True)
    assert world.take(MemoryChanged) == []


def test_a_used_id_is_a_conflict_for_anything_else(world: World) -> None:
    sam, eve = world.register("n1"), world.register("n2")
    memory = made(world, sam)
    world.ask(edit(world, sam, memory, "e1", "blue"), world.append(sam.attachment, "a", "x"))
    answers = world.ask(
        edit(world, sam, memory, "e1", "green"),
        edit(world, eve, memory, "e1", "blue"),
        delete(world, sam, memory, "e1"),
        delete(world, sam, memory, "a"),
        world.append(sam.attachment, "e1", "x"),
    )
    assert [code(answer) for answer in answers] == ["operation_id_conflict"] * 5
    assert world.rows("SELECT max(revision) FROM messages") == [(2,)]


def test_an_id_that_has_a_row_and_no_receipt_any_more_is_a_conflict(world: World) -> None:
    sam = world.register()
    memory = made(world, sam)
    world.ask(edit(world, sam, memory, "e1", "blue"), world.append(sam.attachment, "a"))
    with world.store.transaction():
        world.store._connection.execute("DELETE FROM receipts")
    answers = world.ask(
        edit(world, sam, memory, "e1", "blue"),
        edit(world, sam, memory, "a", "blue"),
        delete(world, sam, memory, "a"),
        edit(world, sam, memory, "e2", "green"),
    )
    assert [code(answer) for answer in answers[:3]] == ["operation_id_conflict"] * 3
    assert answers[3].revision == 3


def test_a_revision_is_held_to_the_same_size_as_a_message(tmp_path: Path) -> None:
    with World(tmp_path, Settings(max_message_kib=1)) as world:
        sam = world.register()
        memory = made(world, sam)
        large, small = world.ask(
            edit(world, sam, memory, "e1", "x" * 1024), edit(world, sam, memory, "e1", "x")
        )
        assert code(large) == "message_too_large"
        assert small.revision == 2


def test_nothing_is_changed_without_a_projection_or_an_attachment(world: World) -> None:
    sam = world.register()
    memory = made(world, sam)
    world.tell(WRITER_PROJECTOR, Readiness(False, "rebuilding"))
    answers = world.ask(edit(world, sam, memory, "e1", "x"), delete(world, sam, memory, "d1"))
    assert [code(answer) for answer in answers] == ["recovering", "recovering"]
    world.tell(WRITER_PROJECTOR, Readiness(True, ""))
    world.ask(Release(world.ref(), sam.attachment))
    answers = world.ask(edit(world, sam, memory, "e1", "x"), delete(world, sam, memory, "d1"))
    assert [code(answer) for answer in answers] == ["stale_attachment", "stale_attachment"]


def test_other_memories_and_positions_are_left_alone(world: World) -> None:
    sam = world.register()
    first, second = made(world, sam, "first"), made(world, sam, "second")
    world.ask(edit(world, sam, first, "e1", "x"))
    (answer,) = world.ask(world.append(sam.attachment, "c", "third", channel="memory"))
    assert answer.seq == 3
    with closing(Reader(world.path)) as reader:
        assert reader.extent(world.core._loaded().channel("memory").id) == (1, 3)
    assert world.rows("SELECT revision FROM messages WHERE memory_id = ?", second) == [(1,)]


_steps = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(["edit", "delete", "make"]),
            st.integers(0, 2),
            st.sampled_from(["p", "q", "r", "s", "t"]),
        ),
        max_size=5,
    ),
    max_size=6,
)


@given(turns=_steps, restarts=st.sets(st.integers(0, 5)))
def test_any_mutations_agree_with_a_dictionary(
    turns: list[list[tuple[str, int, str]]], restarts: set[int]
) -> None:
    with tempfile.TemporaryDirectory() as directory, World(Path(directory)) as world:
        sam = world.register("n1", channels=["memory"])
        memories = [made(world, sam, f"m{number}") for number in range(3)]
        current: dict[str, tuple[int, str]] = {m: (1, f"m{n}") for n, m in enumerate(memories)}
        done: dict[str, tuple[str, int, str]] = {}
        for number, turn in enumerate(turns):
            if number in restarts:
                world.restart()
            operations = [_operation(world, sam, memories, *step) for step in turn]
            for step, answer in zip(turn, world.ask(*operations), strict=True):
                _expect(step, answer, memories, current, done)
            stored = world.rows(
                "SELECT memory_id, revision, json_extract(CAST(envelope AS TEXT), '$.content') "
                "FROM messages WHERE tombstone = 0"
            )
            assert {row[0]: (row[1], row[2]) for row in stored if row[0] in memories} == current
            counted = world.rows(
                "SELECT sum(tombstone = 0), sum(tombstone), count(*) FROM messages"
            )
            kept = world.rows("SELECT memories, tombstones, memories + tombstones FROM meta")
            assert counted == kept


def _operation(
    world: World, sam: Registered, memories: list[str], kind: str, which: int, name: str
) -> Any:
    if kind == "make":
        return world.append(AttachmentId(sam.attachment), name, name, channel="memory")
    if kind == "edit":
        return edit(world, sam, memories[which], name, f"by {name}")
    return delete(world, sam, memories[which], name)


def _expect(
    step: tuple[str, int, str],
    answer: Any,
    memories: list[str],
    current: dict[str, tuple[int, str]],
    done: dict[str, tuple[str, int, str]],
) -> None:
    kind, which, name = step
    known = done.get(name)
    if known is not None:
        same = known[0] == kind and (kind == "make" or known[1] == which)
        assert answer.duplicate if same else code(answer) == "operation_id_conflict"
        return
    memory = memories[which]
    if kind != "make" and memory not in current:
        assert code(answer) == "not_found"
        return
    done[name] = step
    assert not answer.duplicate
    if kind == "edit":
        revision = current[memory][0]
        assert (answer.revision, answer.replaced_revision) == (revision + 1, revision)
        current[memory] = (revision + 1, f"by {name}")
    elif kind == "delete":
        assert (answer.revision, answer.replaced_revision) == (None, current.pop(memory)[0])
