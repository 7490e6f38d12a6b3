"""The inspection hook decides before anything is stored, and says nothing that is not its own."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agentbus.gateway.events import Inspected
from agentbus.gateway.inspect import SIDE_BY_SIDE, judge
from agentbus.wire.events import Closed
from agentbus.wire.links import (
    PROJECTOR_GATEWAY,
    Accepted,
    Append,
    MemoryDelete,
    MemoryEdit,
    ReceiptAsk,
)
from tests.support.gateway_rig import AT, Rig

ALLOW = b'{"decision": "allow"}'


def inspected_rig(**settings: Any) -> Rig:
    return Rig(inspection_command=("/usr/bin/hook",), **settings)


def begin(rig: Rig) -> None:
    """The operation is unknown, so the hook is asked."""
    rig.no_receipt()


# ---- what it decides


@pytest.mark.parametrize(
    "output", [ALLOW, b' {"decision":"allow","reason":"fine"}\n', b'{"decision":"allow","x":1}']
)
def test_an_allowed_operation_goes_on(output: bytes) -> None:
    assert judge(Inspected(1, output)) is None


@pytest.mark.parametrize(
    ("output", "reason", "said"),
    [
        (b'{"decision":"deny","reason":"no keys here"}', "no keys here", "no keys here"),
        (b'{"decision":"deny"}', None, "without a reason"),
        (b'{"decision":"deny","reason":""}', None, "without a reason"),
        (b'{"decision":"deny","reason":null}', None, "without a reason"),
    ],
)
def test_a_denial_carries_its_reason(output: bytes, reason: str | None, said: str) -> None:
    error = judge(Inspected(1, output))
    assert error is not None
    assert (error.code, error.reason, error.retryable) == ("inspection_rejected", reason, False)
    assert said in error.message


def test_a_long_reason_is_cut() -> None:
    error = judge(Inspected(1, msgspec.json.encode({"decision": "deny", "reason": "x" * 60_000})))
    assert error is not None
    assert error.reason is not None
    assert len(error.reason) == 2048


@pytest.mark.parametrize(
    "output",
    [
        b"",
        b"allow",
        b'"allow"',
        b"[]",
        b"{}",
        b'{"decision":"Allow"}',
        b'{"decision":true}',
        b'{"decision":"deny","reason":5}',
        b'{"decision":"allow"}{"decision":"allow"}',
        b'{"decision":"all\xffow"}',
        b"[" * 30_000,
    ],
)
def test_anything_else_is_no_decision(output: bytes) -> None:
    error = judge(Inspected(1, output))
    assert error is not None
    assert (error.code, error.retryable) == ("inspection_unavailable", True)
    assert '{"decision": "allow"}' in error.message


def test_a_failure_is_told() -> None:
    error = judge(Inspected(1, ALLOW, "it did not end within 5 s"))
    assert error is not None
    assert error.code == "inspection_unavailable"
    assert "did not end within 5 s" in error.message


# ---- what it is told


def test_it_is_told_the_operation_with_its_sender() -> None:
    rig = inspected_rig(inspection_timeout_seconds=1.5)
    connection = rig.connect()
    attachment = rig.attach(connection, 1, agent="Sam", repository="tmi")
    rig.send(connection, attachment, "m-1", content="é", metadata={"a": 1}, reply_to="m-0")
    begin(rig)
    (asked,) = rig.inspections
    assert asked.seconds == 1.5
    assert msgspec.json.decode(asked.document) == {
        "operation": "send",
        "operation_id": "m-1",
        "channel": "general",
        "sender": {
            "display_name": "Sam1",
            "agent": "Sam",
            "application": "x",
            "session": "1",
            "child": None,
            "repository": "tmi",
        },
        "payload": {"content": "é", "reply_to": "m-0", "metadata": {"a": 1}},
    }


def test_of_a_change_it_is_told_the_memory_and_its_channel() -> None:
    rig = inspected_rig()
    connection, attachment = rig.member(1)
    change = {"attachment": attachment, "memory_id": "k"}
    rig.ask(connection, "memory.edit", operation_id="e", content="c", references=[], **change)
    rig.ask(connection, "memory.delete", operation_id="d", **change)
    documents = []
    for kind in (MemoryEdit, MemoryDelete):
        begin(rig)
        asked = rig.found(b'{"channel":"memory","content":"old"}')
        assert (asked.identity, asked.message) == ("k", False)
        documents.append(msgspec.json.decode(rig.inspected().document))
        assert rig.frame(kind).memory_id == "k"
    edit, delete = documents
    assert (edit["operation"], edit["operation_id"], edit["channel"]) == (
        "memory_edit",
        "e",
        "memory",
    )
    assert edit["payload"] == {"memory_id": "k", "content": "c", "references": []}
    assert (delete["operation"], delete["channel"]) == ("memory_delete", "memory")
    assert delete["payload"] == {"memory_id": "k"}


def test_a_memory_that_is_not_there_is_not_found_without_asking_it() -> None:
    rig = inspected_rig()
    connection, attachment = rig.member(1)
    request = rig.ask(
        connection, "memory.delete", attachment=attachment, memory_id="k", operation_id="d"
    )
    begin(rig)
    rig.found(None)
    assert rig.result(connection, request)["code"] == "not_found"
    assert rig.inspections == []


# ---- what follows


def test_what_it_allows_goes_to_the_writer() -> None:
    rig = inspected_rig()
    connection, attachment = rig.member(1)
    request = rig.send(connection, attachment)
    begin(rig)
    assert rig.framed(Append) == []
    rig.inspected()
    rig.accept(rig.frame(Append))
    assert rig.result(connection, request)["seq"] == 1


def test_what_it_denies_is_answered_logged_and_stored_nowhere() -> None:
    rig = inspected_rig()
    connection, attachment = rig.member(1)
    request = rig.send(connection, attachment, "m", content="a secret")
    begin(rig)
    rig.inspected(b'{"decision":"deny","reason":"looks like a key"}')
    error = rig.result(connection, request)
    assert (error["code"], error["reason"]) == ("inspection_rejected", "looks like a key")
    assert rig.framed(Append) == []
    (note,) = rig.log
    assert note.action == "inspection_rejected"
    assert note.fields == {
        "operation_id": "m",
        "sender": "Sam1",
        "session": "1",
        "reason": "looks like a key",
    }
    assert rig.core._parts.admission.lanes.credit.operations == 0
    assert rig.core._parts.admission.rejected == 1


def test_a_hook_that_fails_is_logged_and_the_same_send_may_come_again() -> None:
    rig = inspected_rig()
    connection, attachment = rig.member(1)
    request = rig.send(connection, attachment)
    begin(rig)
    rig.inspected(b"", "it ended with status 3")
    assert rig.result(connection, request)["code"] == "inspection_unavailable"
    assert [note.action for note in rig.log] == ["inspection_unavailable"]
    rig.send(connection, attachment)
    begin(rig)
    rig.inspected()
    assert len(rig.framed(Append)) == 1


def test_a_duplicate_is_not_inspected_and_costs_nothing() -> None:
    rig = inspected_rig(send_messages_per_second=1)
    connection, attachment = rig.member(1)
    for _ in range(3):
        request = rig.send(connection, attachment, "m")
        asked = rig.frame(ReceiptAsk)
        rig.outcomes(Accepted(asked.ref, "m", 4, AT, duplicate=True))
        assert rig.result(connection, request)["duplicate"] is True
    assert rig.inspections == []
    assert rig.core._parts.admission.lanes.credit.operations == 0


def test_a_conflict_is_not_inspected() -> None:
    rig = inspected_rig()
    connection, attachment = rig.member(1)
    request = rig.send(connection, attachment)
    rig.refuse(rig.frame(ReceiptAsk).ref, "operation_id_conflict")
    assert rig.result(connection, request)["code"] == "operation_id_conflict"
    assert rig.inspections == []


# ---- order


def test_a_session_is_inspected_one_operation_at_a_time_in_order() -> None:
    rig = inspected_rig()
    connection, attachment = rig.member(1)
    for name in ("a", "b", "c"):
        rig.send(connection, attachment, name)
    sent = []
    for name in ("a", "b", "c"):
        asked = rig.no_receipt()
        assert (asked.operation_id, rig.framed(ReceiptAsk)) == (name, [])
        rig.inspected()
        sent += [frame.message_id for frame in rig.framed(Append)]
    assert sent == ["a", "b", "c"]


def test_a_denied_operation_does_not_stall_its_lane() -> None:
    rig = inspected_rig()
    connection, attachment = rig.member(1)
    rig.send(connection, attachment, "a")
    rig.send(connection, attachment, "b")
    begin(rig)
    rig.inspected(b'{"decision":"deny"}')
    begin(rig)
    rig.inspected()
    assert [frame.message_id for frame in rig.framed(Append)] == ["b"]


def test_sessions_are_inspected_side_by_side_within_a_bound() -> None:
    rig = inspected_rig()
    members = [rig.member(number) for number in range(1, SIDE_BY_SIDE + 3)]
    for number, member in enumerate(members):
        rig.send(*member, f"m-{number}")
        begin(rig)
    assert len(rig.inspections) == SIDE_BY_SIDE
    rig.inspected()
    assert len(rig.inspections) == SIDE_BY_SIDE
    for _ in range(len(members) - 1):
        rig.inspected()
    assert len(rig.framed(Append)) == len(members)


def test_a_slow_hook_holds_up_nobody_else() -> None:
    rig = inspected_rig()
    slow, quick = rig.member(1), rig.member(2)
    rig.send(*slow, "slow")
    begin(rig)
    rig.send(*quick, "quick")
    begin(rig)
    rig.inspections.reverse()
    rig.inspected()
    assert [frame.message_id for frame in rig.framed(Append)] == ["quick"]


# ---- ends


def test_with_its_connection_an_inspection_ends() -> None:
    rig = inspected_rig()
    connection, attachment = rig.member(1)
    rig.send(connection, attachment, "a")
    rig.send(connection, attachment, "b")
    begin(rig)
    (asked,) = rig.inspections
    rig.disconnect(connection)
    assert rig.stopped == [asked.ref]
    assert rig.framed(Append) == []
    assert rig.framed(ReceiptAsk) == []
    assert rig.core._parts.admission.lanes.credit.operations == 0


def test_one_that_waits_for_its_turn_ends_without_having_run() -> None:
    rig = inspected_rig()
    members = [rig.member(number) for number in range(1, SIDE_BY_SIDE + 2)]
    for member in members:
        rig.send(*member)
        begin(rig)
    rig.disconnect(members[-1][0])
    assert rig.stopped == []
    for _ in range(SIDE_BY_SIDE):
        rig.inspected()
    assert rig.inspections == []


def test_when_the_bus_is_not_ready_any_more_what_is_inspected_is_refused() -> None:
    rig = inspected_rig()
    connection, attachment = rig.member(1)
    request = rig.send(connection, attachment)
    begin(rig)
    rig.event(Closed(PROJECTOR_GATEWAY))
    assert rig.result(connection, request)["code"] == "recovering"
    assert len(rig.stopped) == 1


def test_a_receipt_that_comes_too_late_begins_nothing() -> None:
    rig = inspected_rig()
    connection, attachment = rig.member(1)
    rig.send(connection, attachment)
    rig.ask(connection, "release", attachment=attachment)
    rig.no_receipt()
    assert rig.inspections == []


def test_at_the_end_of_the_daemon_inspections_end() -> None:
    rig = inspected_rig()
    connection, attachment = rig.member(1)
    request = rig.send(connection, attachment)
    begin(rig)
    rig.stop()
    assert rig.result(connection, request)["code"] == "unavailable"
    assert len(rig.stopped) == 1
    assert rig.exit == 0
