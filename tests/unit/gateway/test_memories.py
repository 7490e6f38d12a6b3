"""Memories change in order, and nobody is left with what they were."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agentbus.gateway.events import SendFirst, SendIfRead, SendLines
from agentbus.gateway.push import RETRY_SECONDS
from agentbus.model.ids import Seq
from agentbus.wire.events import Closed
from agentbus.wire.links import (
    GATEWAY_WRITER,
    Append,
    MemoryDelete,
    MemoryEdit,
    Mutated,
    ReceiptAsk,
)
from tests.support.gateway_rig import MEMORY, Rig, entries, envelope, info, top


def edit(rig: Rig, connection: int, attachment: str, operation: str = "e", **params: Any) -> int:
    given = {"memory_id": "memory-1", "content": "new", **params}
    return rig.ask(
        connection, "memory.edit", attachment=attachment, operation_id=operation, **given
    )


def delete(rig: Rig, connection: int, attachment: str, operation: str = "d") -> int:
    return rig.ask(
        connection,
        "memory.delete",
        attachment=attachment,
        operation_id=operation,
        memory_id="memory-1",
    )


def follower(rig: Rig, session: int, **given: Any) -> tuple[int, str]:
    return rig.member(session, info(session, MEMORY, **given))


# ---- the methods


def test_an_edit_reaches_the_writer_and_is_answered_with_what_it_replaced() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = edit(rig, connection, attachment, metadata={})
    frame = rig.frame(MemoryEdit)
    assert (frame.memory_id, frame.operation_id, frame.content) == ("memory-1", "e", "new")
    assert (frame.message_type, frame.metadata, frame.references) == (None, {}, None)
    rig.commit += 1
    rig.outcomes(Mutated(frame.ref, "memory-1", 3, 2, duplicate=False))
    assert rig.result(connection, request) == {
        "memory_id": "memory-1",
        "revision": 3,
        "replaced_revision": 2,
        "duplicate": False,
    }


def test_a_deletion_is_answered_with_the_revision_that_went() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = delete(rig, connection, attachment)
    frame = rig.frame(MemoryDelete)
    rig.outcomes(Mutated(frame.ref, "memory-1", None, 2, duplicate=True))
    assert rig.result(connection, request) == {
        "memory_id": "memory-1",
        "deleted_revision": 2,
        "duplicate": True,
    }


def test_fingerprints_tell_what_the_author_chose_and_nothing_else() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    requests = [
        {"content": "a"},
        {"content": "a", "operation": "other"},
        {"content": "a", "metadata": {}},
        {"content": "a", "type": "message"},
        {"content": "b"},
        {"content": "a", "memory_id": "memory-2"},
    ]
    for params in requests:
        edit(rig, connection, attachment, **params)
    delete(rig, connection, attachment)
    prints = [frame.fingerprint for frame in rig.framed(MemoryEdit)]
    prints += [frame.fingerprint for frame in rig.framed(MemoryDelete)]
    assert prints[0] == prints[1]
    assert len(set(prints)) == len(prints) - 1
    assert {len(each) for each in prints} == {16}


def test_sends_and_changes_of_a_session_share_its_rate() -> None:
    rig = Rig(send_messages_per_second=2)
    connection, attachment = rig.member(1)
    rig.send(connection, attachment, "a")
    edit(rig, connection, attachment, "b")
    request = delete(rig, connection, attachment, "c")
    assert rig.framed(MemoryDelete) == []
    assert rig.no_receipt().operation_id == "c"
    assert rig.result(connection, request)["code"] == "rate_limited"


def test_sends_and_changes_of_a_session_share_its_lane() -> None:
    rig = Rig(send_messages_per_second=10_000)
    flood = rig.flood()
    connection, attachment = rig.member(99)
    rig.send(connection, attachment, "a")
    edit(rig, connection, attachment, "b")
    delete(rig, connection, attachment, "c")
    for each in flood[:3]:
        rig.refuse(each.ref, "not_found")
    kinds = [
        type(frame) for frame in rig.frames if isinstance(frame, Append | MemoryEdit | MemoryDelete)
    ]
    assert kinds == [Append, MemoryEdit, MemoryDelete]


def test_a_change_gives_its_credit_back_when_it_is_visible() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    edit(rig, connection, attachment)
    credit = rig.core._parts.admission.lanes.credit
    frame = rig.frame(MemoryEdit)
    rig.commit += 1
    rig.outcomes(Mutated(frame.ref, "memory-1", 2, 1, duplicate=False))
    assert credit.operations == 1
    rig.show_nothing()
    assert credit.operations == 0


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"memory_id": ""}, "memory_id"),
        ({"operation": "a\nb"}, "operation_id"),
        ({"type": "a\nb"}, "type"),
        ({"metadata": {"n": 2**70}}, "64 bits"),
    ],
)
def test_an_edit_of_the_wrong_shape_is_refused(params: dict[str, Any], said: str) -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    error = rig.result(connection, edit(rig, connection, attachment, **params))
    assert error["code"] == "invalid_argument"
    assert said in error["message"]


def test_an_empty_type_is_allowed_as_it_clears() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    edit(rig, connection, attachment, type="")
    assert rig.frame(MemoryEdit).message_type == ""


def test_an_edit_that_is_too_large_asks_its_receipt_first() -> None:
    rig = Rig(max_message_kib=1)
    connection, attachment = rig.member(1)
    request = edit(rig, connection, attachment, content="x" * 2000)
    assert rig.framed(MemoryEdit) == []
    asked = rig.frame(ReceiptAsk)
    rig.outcomes(Mutated(asked.ref, "memory-1", 2, 1, duplicate=True))
    assert rig.result(connection, request)["duplicate"] is True
    request = edit(rig, connection, attachment, content="x" * 2000)
    rig.no_receipt()
    assert rig.result(connection, request)["code"] == "message_too_large"


def test_while_the_bus_recovers_nothing_is_changed() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.project(ready=False)
    for request in (edit(rig, connection, attachment), delete(rig, connection, attachment)):
        assert rig.result(connection, request)["code"] == "recovering"


# ---- who is told


def test_whoever_holds_the_old_revision_is_told_the_new_one() -> None:
    rig = Rig()
    connection, attachment = follower(rig, 1)
    rig.show(1, 2, channel=MEMORY)
    body = rig.change(2)
    (note,) = rig.notes(connection, "revise")
    assert note.pop("message")["seq"] == 2
    assert note == {
        "attachment": attachment,
        "epoch": "1.0",
        "subscription": 1,
        "seq": 2,
        "memory_id": "memory-2",
    }
    assert any(body in line for line in rig.raw[connection])


def test_whoever_holds_a_deleted_memory_is_told_so() -> None:
    rig = Rig()
    connection, attachment = follower(rig, 1)
    rig.show(1, 2, channel=MEMORY)
    rig.change(2, content=b"")
    (note,) = rig.notes(connection, "revoke")
    assert note == {
        "attachment": attachment,
        "epoch": "1.0",
        "subscription": 1,
        "seq": 2,
        "memory_id": "memory-2",
    }


def test_that_is_written_before_the_change_is_answered() -> None:
    rig = Rig()
    editor, attachment = rig.member(1)
    holder, _ = follower(rig, 2)
    rig.show(1, 1, channel=MEMORY)
    edit(rig, editor, attachment)
    frame = rig.frame(MemoryEdit)
    rig.effects.clear()
    rig.change(1)
    rig.outcomes(Mutated(frame.ref, "memory-1", 2, 1, duplicate=False))
    lines = [each for each in rig.effects if isinstance(each, SendFirst | SendLines)]
    assert [(type(each), each.connection) for each in lines] == [
        (SendFirst, holder),
        (SendLines, editor),
    ]


def test_whoever_has_handed_it_off_is_not_told() -> None:
    rig = Rig()
    connection, attachment = follower(rig, 1)
    rig.show(1, 1, channel=MEMORY)
    positions = [[1, 1]]
    rig.ask(connection, "delivered", attachment=attachment, epoch="1.0", positions=positions)
    rig.change(1)
    assert rig.notes(connection, "revise") == []


def test_a_deleted_memory_makes_room_and_lets_the_cursor_pass() -> None:
    rig = Rig(prefetch_messages=2)
    connection, _ = follower(rig, 1)
    rig.show(1, 3, channel=MEMORY)
    assert rig.delivered(connection) == [1, 2]
    rig.change(2, content=b"")
    asked = rig.read(entries(3, 3))
    assert asked.edge == 2
    assert rig.delivered(connection) == [3]


def test_attached_subscribers_get_a_notice_but_not_of_their_own_changes() -> None:
    rig = Rig()
    author, _ = follower(rig, 1)
    curious, _ = follower(rig, 2, include_own=True)
    other, attachment = follower(rig, 3)
    bystander, _ = rig.member(4)
    body = rig.change(1, 7, editor=1)
    rig.change(2, 3, content=b"", editor=2)
    changed, deleted = rig.notes(other, "notice")
    assert changed.pop("message")["seq"] == 1
    assert changed == {
        "attachment": attachment,
        "kind": "memory_changed",
        "channel": "memory",
        "memory_id": "memory-1",
        "revision": 7,
    }
    assert deleted == {
        "attachment": attachment,
        "kind": "memory_deleted",
        "channel": "memory",
        "memory_id": "memory-2",
        "revision": 3,
    }
    assert any(body in line for line in rig.raw[other])
    assert [note["kind"] for note in rig.notes(author, "notice")] == ["memory_deleted"]
    kinds = ["memory_changed", "memory_deleted"]
    assert [note["kind"] for note in rig.notes(curious, "notice")] == kinds
    assert rig.notes(bystander, "notice") == []


def test_notices_may_be_missed_and_moves_of_what_is_held_may_not() -> None:
    rig = Rig()
    follower(rig, 1)
    rig.show(1, 1, channel=MEMORY)
    rig.effects.clear()
    rig.change(1)
    kinds = [type(each) for each in rig.effects if isinstance(each, SendFirst | SendIfRead)]
    assert kinds == [SendFirst, SendIfRead]


# ---- nothing obsolete is pushed


def test_a_creation_that_was_edited_meanwhile_is_pushed_as_it_is_now() -> None:
    rig = Rig()
    connection, _ = follower(rig, 1)
    body = rig.change(1)
    rig.show(1, 1, channel=MEMORY, commit=rig.commit - 1)
    assert any(body in line and b'"deliver"' in line for line in rig.raw[connection])
    assert rig.notes(connection, "revise") == []


def test_a_creation_that_was_deleted_meanwhile_is_passed_over() -> None:
    rig = Rig()
    connection, _ = follower(rig, 1)
    rig.change(2, content=b"")
    rig.show(1, 3, channel=MEMORY, commit=rig.commit - 1)
    assert rig.delivered(connection) == [1]
    rig.read(entries(2, 3))
    (note,) = rig.notes(connection, "deliver")
    assert ([message["seq"] for message in note["messages"]], note["through"]) == ([3], 3)


def test_memories_that_were_deleted_at_the_end_do_not_keep_it_reading() -> None:
    rig = Rig()
    rig.project(top(MEMORY, 5, count=2))
    connection, attachment = follower(rig, 1)
    rig.read(entries(1, 2))
    assert rig.delivered(connection) == [1, 2]
    rig.sleep(3 * RETRY_SECONDS)
    assert rig.reads == []
    positions = [[1, 2]]
    rig.ask(connection, "delivered", attachment=attachment, epoch="1.0", positions=positions)
    rig.call(connection, "heartbeat")
    assert rig.frames[-1].positions == [(1, 5)]


def test_a_read_that_was_under_way_brings_nothing_obsolete() -> None:
    rig = Rig()
    rig.project(top(MEMORY, 2))
    connection, _ = follower(rig, 1)
    body = rig.change(2)
    rig.show_nothing()
    rig.read(entries(1, 2))
    assert any(body in line for line in rig.raw[connection])
    assert not any(envelope(2) in line for line in rig.raw[connection])


@pytest.mark.parametrize("deleted", [False, True])
def test_nor_does_one_begun_before_a_change_that_the_writers_successor_tells_of(
    deleted: bool,
) -> None:
    rig = Rig()
    rig.project(top(MEMORY, 2))
    connection, attachment = follower(rig, 1)
    listed = listing(rig, connection, attachment)
    rig.commit += 1
    rig.restart_writer()
    rig.show_nothing()
    rig.commit -= 1
    body = rig.change(2, content=b"" if deleted else b'{"seq":2,"content":"new"}')
    rig.read(entries(1, 2))
    rig.read(entries(1, 2))
    assert rig.delivered(connection) == ([1] if deleted else [1, 2])
    memories = rig.result(connection, listed)["memories"]
    assert [each["seq"] for each in memories] == ([1] if deleted else [1, 2])
    assert not any(envelope(2) in line for line in rig.raw[connection])
    assert deleted or sum(body in line for line in rig.raw[connection]) == 3  # and a notice
    rig.read_all(entries(1, 1) if deleted else entries(1, 2))


def test_what_may_have_changed_while_the_writer_was_away_is_read_when_redis_has_it() -> None:
    rig = Rig()
    rig.project(top(MEMORY, 2))
    rig.commit = 7
    rig.restart_writer()
    connection, _ = follower(rig, 1)
    assert rig.reads == []
    rig.show(3, 3, channel=MEMORY, commit=6)
    assert rig.delivered(connection) == []
    rig.show_nothing()
    rig.read(entries(1, 3))
    assert rig.delivered(connection) == [1, 2, 3]


def test_a_change_that_was_given_up_may_have_been_made_so_nothing_that_is_held_counts() -> None:
    rig = Rig()
    connection, attachment = follower(rig, 1)
    rig.show(1, 1, channel=MEMORY)
    request = edit(rig, connection, attachment)
    rig.event(Closed(GATEWAY_WRITER))
    rig.sleep(30.1)
    rig.call(connection, "heartbeat")
    assert rig.result(connection, request)["code"] == "unavailable"
    rig.restart_writer()
    assert rig.notes(connection, "epoch") == [{"epoch": "1.1"}]
    rig.restart_writer()
    assert rig.notes(connection, "epoch") == []


def test_ordinary_channels_do_not_wait_for_that() -> None:
    rig = Rig()
    connection, _ = rig.member(1)
    rig.commit = 7
    rig.restart_writer()
    rig.show(1, 1, commit=6)
    assert rig.delivered(connection) == [1]


# ---- counts


def test_a_channel_counts_the_memories_that_are_there() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 3, channel=MEMORY)
    rig.change(2, content=b"")
    rig.change(4, content=b"")
    rig.show(4, 5, channel=MEMORY, commit=rig.commit - 1)
    rig.show_nothing(rig.commit, top(MEMORY, 5, count=3))
    assert counted(rig, connection, attachment) == 3


def test_a_deletion_that_was_told_only_when_it_was_visible_counts() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 3, channel=MEMORY)
    rig.commit += 1
    rig.show_nothing(rig.commit, top(MEMORY, 3, count=2))
    rig.commit -= 1
    rig.change(2, content=b"")
    assert counted(rig, connection, attachment) == 2


def test_a_deletion_that_is_told_again_counts_once_whatever_is_on_its_way() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 3, channel=MEMORY)
    rig.change(2, content=b"")
    rig.show_nothing(rig.commit, top(MEMORY, 3, count=2))
    rig.change(2, content=b"")  # by a commit that is not visible yet
    assert counted(rig, connection, attachment) == 2
    rig.show(4, 4, channel=MEMORY, commit=rig.commit)
    assert counted(rig, connection, attachment) == 3


def test_an_edit_that_is_told_again_does_not_make_a_channel_older() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.show(1, 1, channel=MEMORY)
    later = msgspec.structs.replace(top(MEMORY, 1), newest_at="2026-11-30T16:41:00.000Z")
    rig.show_nothing(rig.commit, later)
    rig.change(1)
    _, memory = rig.call(connection, "channel.list", attachment=attachment)["channels"]
    assert memory["newest_at"] == later.newest_at


def counted(rig: Rig, connection: int, attachment: str) -> int:
    _, memory = rig.call(connection, "channel.list", attachment=attachment)["channels"]
    count: int = memory["messages"]
    return count


# ---- lists


def listing(rig: Rig, connection: int, attachment: str, **params: Any) -> int:
    given = {"attachment": attachment, "channel": "memory", **params}
    return rig.ask(connection, "memory.list", **given)


def test_memories_are_listed_in_pages_in_the_order_of_their_creation() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = listing(rig, connection, attachment, limit=2)
    asked = rig.read(entries(1, 3), more=True)
    assert (asked.channel_id, asked.edge, asked.forward, asked.count) == (MEMORY, 0, True, 3)
    page = rig.result(connection, request)
    assert [memory["seq"] for memory in page["memories"]] == [1, 2]
    request = listing(rig, connection, attachment, cursor=page["next_cursor"], limit=2)
    assert rig.read(entries(3, 3)).edge == 2
    page = rig.result(connection, request)
    assert [memory["seq"] for memory in page["memories"]] == [3]
    assert "next_cursor" not in page


def test_a_list_shows_what_memories_are_now() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.change(2, content=b"")
    body = rig.change(3)
    rig.show_nothing(commit=rig.commit - 2)
    listing(rig, connection, attachment)
    rig.read(entries(1, 3))
    assert b'"memories":[' + envelope(1) + b"," + body + b"]" in rig.raw[connection][-1]


def test_only_memory_channels_have_memories() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = listing(rig, connection, attachment, channel="general")
    error = rig.result(connection, request)
    assert error["code"] == "invalid_argument"
    assert "general" in error["message"]


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "9" * 30])
def test_a_cursor_that_is_none_is_refused(cursor: str) -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    error = rig.result(connection, listing(rig, connection, attachment, cursor=cursor))
    assert error["code"] == "invalid_argument"


def test_a_session_finds_in_the_list_what_it_has_just_sent() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.send(connection, attachment, channel="memory")
    rig.accept(rig.frame(Append))
    listing(rig, connection, attachment)
    assert rig.reads == []
    rig.show(1, 1, channel=MEMORY, commit=rig.commit)
    rig.read(entries(1, 1))
    assert b'"memories":[' + envelope(1) in rig.raw[connection][-1]


def test_a_list_that_waits_in_vain_says_that_the_bus_recovers() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.send(connection, attachment, channel="memory")
    rig.accept(rig.frame(Append), first=int(Seq(1)))
    request = listing(rig, connection, attachment)
    rig.sleep(5.1)
    assert rig.result(connection, request)["code"] == "recovering"
    assert rig.reads == []
