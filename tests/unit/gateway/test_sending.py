"""A send is judged in the order of the semantics, answered once, and its credit comes back."""

from __future__ import annotations

from typing import Any

import pytest

from agentbus.gateway.lanes import CREDIT_OPERATIONS, LANE_OPERATIONS
from agentbus.model.ids import Seq
from agentbus.model.message import Payload, Reference, fingerprint
from agentbus.wire.events import Closed
from agentbus.wire.links import (
    GATEWAY_WRITER,
    PROJECTOR_GATEWAY,
    Accepted,
    Append,
    ReceiptAsk,
    Stop,
)
from tests.support.gateway_rig import AT, Rig


def unknown(rig: Rig, connection: int, request: int) -> dict[str, Any]:
    """What is said once the writer does not know the operation."""
    assert rig.reply(connection, request) is None
    rig.no_receipt()
    return rig.result(connection, request)


def test_a_send_reaches_the_writer_with_its_payload_and_is_answered_with_its_place() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    reference = {"kind": "windows_path", "value": "C:\\x"}
    request = rig.send(
        connection,
        attachment,
        "m-1",
        content="hé \u2028 👍",
        type="note",
        reply_to="m-0",
        metadata={"n": 1, "f": 0.5, "s": "x", "b": True, "z": None},
        references=[reference],
    )
    frame = rig.frame(Append)
    payload = Payload(
        "hé \u2028 👍",
        "note",
        "m-0",
        {"n": 1, "f": 0.5, "s": "x", "b": True, "z": None},
        [Reference("windows_path", "C:\\x")],
    )
    assert (frame.attachment, frame.channel, frame.message_id) == (attachment, "general", "m-1")
    assert frame.payload == payload
    assert frame.fingerprint == fingerprint("general", payload)
    assert rig.reply(connection, request) is None
    rig.accept(frame, first=9)
    assert rig.result(connection, request) == {
        "message_id": "m-1",
        "seq": 9,
        "sent_at": AT,
        "duplicate": False,
    }


def test_answers_may_overtake_each_other_and_find_their_requests() -> None:
    rig = Rig()
    one, two = rig.member(1), rig.member(2)
    first, second = rig.send(*one, "a"), rig.send(*two, "b")
    frames = rig.framed(Append)
    rig.accept(*reversed(frames))
    assert rig.result(one[0], first)["message_id"] == "a"
    assert rig.result(two[0], second)["message_id"] == "b"


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"channel": ""}, "channel has 0"),
        ({"channel": "a\tb"}, "control character"),
        ({"message_id": "x" * 129}, "message_id has 129"),
        ({"message_id": ""}, "message_id has 0"),
        ({"type": "\x1b[31m"}, "control character"),
        ({"reply_to": ""}, "reply_to has 0"),
        ({"metadata": {"n": 2**64}}, "64 bits"),
        ({"metadata": {"n": -(2**63) - 1}}, "64 bits"),
        ({"metadata": {"n": [1]}}, "metadata"),
        ({"references": [{"kind": "ftp", "value": "x"}]}, "kind"),
        ({"references": [{"kind": "url", "value": "x", "y": 1}]}, "unknown field"),
        ({"content": 7}, "content"),
    ],
)
def test_a_send_of_a_wrong_shape_is_refused_and_says_why(
    params: dict[str, object], said: str
) -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    given = {"message_id": "m", **params}
    error = rig.result(connection, rig.send(connection, attachment, **given))
    assert (error["code"], error["retryable"]) == ("invalid_argument", False)
    assert said in error["message"]
    assert rig.framed(Append) == []


def test_shape_comes_before_readiness_and_readiness_before_the_claim() -> None:
    rig = Rig()
    connection, _ = rig.member(1)
    rig.project(ready=False)
    bad = rig.result(connection, rig.send(connection, "1.9", ""))
    assert bad["code"] == "invalid_argument"
    early = rig.result(connection, rig.send(connection, "1.9"))
    assert (early["code"], early["retryable"]) == ("recovering", True)
    assert "rebuilding" in early["message"]
    rig.project()
    assert rig.result(connection, rig.send(connection, "1.9"))["code"] == "stale_attachment"


@pytest.mark.parametrize("link", [GATEWAY_WRITER, PROJECTOR_GATEWAY])
def test_without_the_writer_or_the_projector_the_bus_recovers(link: str) -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.event(Closed(link))
    assert rig.result(connection, rig.send(connection, attachment))["code"] == "recovering"


def test_while_the_daemon_stops_nothing_is_taken() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    rig.send(connection, attachment, "before")
    rig.control_says(Stop())
    assert rig.result(connection, rig.send(connection, attachment))["code"] == "unavailable"


# ---- sizes


def test_the_envelope_is_what_is_limited() -> None:
    rig = Rig(max_message_kib=64)
    connection, attachment = rig.member(1)
    rig.send(connection, attachment, content="x" * (65536 - 400))
    assert len(rig.framed(Append)) == 1
    error = unknown(rig, connection, rig.send(connection, attachment, content="x" * 65536))
    assert error["code"] == "message_too_large"
    assert "max_message_kib is 64" in error["message"]


def test_escapes_are_not_counted_as_they_were_written_but_as_they_are_stored() -> None:
    rig = Rig(max_message_kib=64)
    connection, attachment = rig.member(1)
    escaped = b"\\u00e9" * 20_000
    rig.line(
        connection,
        b'{"id":"e","method":"send","params":{"attachment":"%b","channel":"general",'
        b'"message_id":"m","content":"%b"}}' % (attachment.encode(), escaped),
    )
    assert rig.inbox[connection] == []
    assert rig.frame(Append).payload.content == "é" * 20_000


# ---- rates


def test_beyond_the_rate_it_says_when_to_try_again() -> None:
    rig = Rig(send_messages_per_second=2)
    connection, attachment = rig.member(1)
    for number in range(2):
        rig.send(connection, attachment, str(number))
    error = unknown(rig, connection, rig.send(connection, attachment, "c"))
    assert (error["code"], error["retryable"]) == ("rate_limited", True)
    assert error["retry_after_ms"] == 500
    rig.sleep(0.5)
    assert rig.reply(connection, rig.send(connection, attachment, "d")) is None


def test_a_duplicate_costs_nothing_and_has_the_original_facts() -> None:
    rig = Rig(send_messages_per_second=1)
    connection, attachment = rig.member(1)
    for _ in range(5):
        request = rig.send(connection, attachment, "same")
        rig.accept(rig.frame(Append), first=4, duplicate=True)
        result = rig.result(connection, request)
        assert (result["seq"], result["duplicate"]) == (4, True)


def test_registering_anew_does_not_bring_a_new_rate() -> None:
    rig = Rig(send_messages_per_second=1)
    connection, attachment = rig.member(1)
    rig.send(connection, attachment)
    rig.disconnect(connection)
    again, attachment = rig.member(1)
    assert unknown(rig, again, rig.send(again, attachment))["code"] == "rate_limited"


# ---- receipts first


def test_what_would_be_refused_by_its_size_asks_its_receipt_first() -> None:
    rig = Rig(max_message_kib=1)
    connection, attachment = rig.member(1)
    request = rig.send(connection, attachment, "m", content="x" * 2000)
    assert rig.framed(Append) == []
    asked = rig.frame(ReceiptAsk)
    payload = Payload("x" * 2000)
    assert (asked.attachment, asked.operation_id) == (attachment, "m")
    assert asked.fingerprint == fingerprint("general", payload)
    rig.outcomes(Accepted(asked.ref, "m", Seq(4), AT, duplicate=True))
    assert rig.result(connection, request)["duplicate"] is True


def test_what_would_be_refused_by_its_rate_asks_its_receipt_first() -> None:
    rig = Rig(send_messages_per_second=1)
    connection, attachment = rig.member(1)
    rig.send(connection, attachment, "a")
    request = rig.send(connection, attachment, "b")
    rig.refuse(rig.frame(ReceiptAsk).ref, "operation_id_conflict")
    assert rig.result(connection, request)["code"] == "operation_id_conflict"


def test_a_receipt_that_is_not_answered_is_waited_for_across_a_restart_of_the_writer() -> None:
    rig = Rig(send_messages_per_second=1)
    connection, attachment = rig.member(1)
    rig.send(connection, attachment, "a")
    request = rig.send(connection, attachment, "b")
    rig.restart_writer()
    assert unknown(rig, connection, request)["code"] == "rate_limited"


# ---- credit and lanes


def test_the_writer_is_not_given_more_than_the_credit() -> None:
    rig = Rig()
    flood = rig.flood()
    assert len(flood) == CREDIT_OPERATIONS
    rig.send(*rig.member(99), "waits")
    rig.accept(*flood)
    assert rig.framed(Append) == [], "not yet visible"
    rig.show(1, 1, commit=rig.commit)
    assert [frame.message_id for frame in rig.framed(Append)] == ["waits"]


def test_a_full_lane_refuses_at_once() -> None:
    rig = Rig(send_messages_per_second=10_000)
    rig.flood()
    connection, attachment = rig.member(99)
    waiting = [rig.send(connection, attachment, str(n)) for n in range(LANE_OPERATIONS)]
    error = unknown(rig, connection, rig.send(connection, attachment, "too much"))
    assert (error["code"], error["retry_after_ms"]) == ("rate_limited", 100)
    assert all(rig.reply(connection, request) is None for request in waiting)


def test_refused_sends_give_their_credit_back() -> None:
    rig = Rig()
    flood = rig.flood()
    connection, attachment = rig.member(99)
    rig.send(connection, attachment, "waits")
    rig.refuse(flood[0].ref, "not_found")
    assert [frame.message_id for frame in rig.framed(Append)] == ["waits"]


def test_sends_of_one_session_keep_their_order_through_the_lane() -> None:
    rig = Rig(send_messages_per_second=10_000)
    flood = rig.flood()
    connection, attachment = rig.member(99)
    for number in range(20):
        rig.send(connection, attachment, str(number))
    rig.accept(*flood)
    rig.show(1, 1, commit=rig.commit)
    sent = [frame.message_id for frame in rig.framed(Append) if frame.attachment == attachment]
    assert sent == [str(number) for number in range(20)]


def test_what_waits_when_recovery_begins_is_told_so() -> None:
    rig = Rig()
    rig.flood()
    connection, attachment = rig.member(99)
    waiting = rig.send(connection, attachment, "waits")
    rig.project(ready=False)
    assert rig.result(connection, waiting)["code"] == "recovering"


# ---- the writer's restart


def test_what_was_not_answered_is_asked_again_in_the_same_order() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    requests = [rig.send(connection, attachment, name) for name in "abc"]
    appends = rig.framed(Append)
    rig.accept(appends[0])
    rig.restart_writer()
    assert rig.framed(Append) == appends[1:]
    rig.accept(*appends[1:], first=2)
    assert [rig.result(connection, request)["seq"] for request in requests] == [1, 2, 3]


def test_a_send_caught_by_a_restart_waits_thirty_seconds_at_most() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    request = rig.send(connection, attachment)
    rig.event(Closed(GATEWAY_WRITER))
    rig.sleep(29)
    assert rig.reply(connection, request) is None
    rig.call(connection, "heartbeat")
    rig.sleep(2)
    error = rig.result(connection, request)
    assert (error["code"], error["retryable"]) == ("unavailable", True)
    rig.frames.clear()
    rig.restart_writer()
    assert rig.framed(Append) == []


def test_a_storage_error_reaches_everybody_in_the_batch() -> None:
    rig = Rig()
    one, two = rig.member(1), rig.member(2)
    requests = [(one[0], rig.send(*one, "a")), (two[0], rig.send(*two, "b"))]
    for frame in rig.framed(Append):
        rig.refuse(frame.ref, "storage_error", "database or disk is full")
    for connection, request in requests:
        error = rig.result(connection, request)
        assert (error["code"], error["retryable"]) == ("storage_error", True)
