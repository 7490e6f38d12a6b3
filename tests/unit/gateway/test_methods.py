"""What happens to a line before and after its method."""

from __future__ import annotations

import pytest

from agentbus.gateway import methods, requests
from agentbus.gateway.events import Broke
from agentbus.gateway.sending import Sending
from agentbus.wire.error_codes import (
    APPLICATION_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
)
from agentbus.wire.lines import Overlong
from agentbus.wire.rpc import MAX_LINE, METHODS
from tests.support.gateway_rig import Rig


def code(rig: Rig, connection: int) -> int:
    number: int = rig.inbox[connection].pop()["error"]["code"]
    return number


def test_there_is_a_handler_for_every_method() -> None:
    rig = Rig()
    connection = rig.connect()
    for method in METHODS:
        rig.ask(connection, method)
    rig.sleep(2)
    codes = [line["error"]["code"] for line in rig.inbox[connection] if "error" in line]
    assert METHOD_NOT_FOUND not in codes


def test_bad_lines_are_answered_and_the_connection_lives() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    for line, expected in (
        (b"not JSON", PARSE_ERROR),
        (b'{"id":1,"method":"nope"}', METHOD_NOT_FOUND),
        (b'{"id":1,"method":"send","params":{"content":7}}', INVALID_PARAMS),
        (b'{"id":1,"method":"send","params":[]}', INVALID_PARAMS),
        (b'{"id":1,"method":"send","params":{"content":"\xff"}}', INVALID_PARAMS),
        (b"[]", INVALID_REQUEST),
    ):
        rig.line(connection, line)
        assert code(rig, connection) == expected
    rig.line(connection, Overlong(MAX_LINE, b'{"id":5,"method":"send"'))
    assert code(rig, connection) == INVALID_REQUEST
    assert rig.call(connection, "heartbeat")["attachments"] == [attachment]


def test_application_errors_have_their_own_number() -> None:
    rig = Rig()
    connection = rig.connect()
    rig.ask(connection, "renew", attachment="1.1")
    assert code(rig, connection) == APPLICATION_ERROR


def test_before_a_greeting_only_little_may_be_asked() -> None:
    rig = Rig()
    connection = rig.connect(greet=False)
    for method in METHODS.keys() - requests.ANYBODY:
        rig.ask(connection, method)
        assert code(rig, connection) == INVALID_REQUEST


def test_a_request_without_an_id_is_carried_out_and_not_answered() -> None:
    rig = Rig()
    connection, attachment = rig.member(1)
    params = b'{"attachment":"%b","channel":"general","message_id":"m","content":"x"}'
    rig.line(connection, b'{"method":"send","params":' + params % attachment.encode() + b"}")
    (frame,) = rig.frames
    rig.accept(frame)
    assert rig.inbox[connection] == []


def test_ids_come_back_as_they_were() -> None:
    rig = Rig()
    connection = rig.connect()
    for identity in (b"7", b'"7"', b'"\\u00e9\\n"', b"-1", b"9007199254740993"):
        rig.line(connection, b'{"id":%b,"method":"heartbeat"}' % identity)
    assert [line["id"] for line in rig.inbox[connection]] == [
        7, "7", "é\n", -1, 9007199254740993,
    ]  # fmt: skip


def test_too_many_unanswered_requests_are_refused_but_heartbeats_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(methods, "UNANSWERED", 5)
    rig = Rig()
    connection, attachment = rig.member(1)
    for _ in range(5):
        rig.ask(connection, "renew", attachment=attachment)
    error = rig.call(connection, "renew", attachment=attachment)
    assert (error["code"], error["retry_after_ms"]) == ("rate_limited", methods.RETRY_MS)
    assert rig.call(connection, "heartbeat")["attachments"] == [attachment]


def test_a_fault_of_ours_is_answered_logged_and_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Sending, "send", broken)
    rig = Rig()
    connection, attachment = rig.member(1)
    error = rig.result(connection, rig.send(connection, attachment))
    assert error["code"] == "internal"
    (broke,) = [effect for effect in rig.effects if isinstance(effect, Broke)]
    assert (broke.method, type(broke.error)) == ("send", ZeroDivisionError)
    assert rig.call(connection, "heartbeat")["attachments"] == [attachment]


def test_lines_of_a_connection_that_is_over_are_nothing() -> None:
    rig = Rig()
    connection = rig.connect()
    rig.disconnect(connection)
    rig.disconnect(connection)
    rig.ask(connection, "heartbeat")
    assert rig.inbox[connection] == []
