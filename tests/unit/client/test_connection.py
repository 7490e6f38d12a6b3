"""Requests and answers find each other; errors come back as what they were."""

from __future__ import annotations

import msgspec
import pytest

from agentbus.client.connection import Answer, Connection, Note
from agentbus.errors import BY_CODE, InternalError, InvalidArgument, RateLimited
from agentbus.wire.error_codes import to_rpc
from agentbus.wire.rpc import AttachmentParams, DeliverNote, Empty, EpochNote, HeartbeatResult

REQUEST = AttachmentParams(attachment="1.1")


def line(**members: object) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0"} | members) + b"\n"


def test_a_request_is_one_line_with_a_number_of_its_own():
    connection = Connection()
    first, text = connection.request("release", REQUEST)
    second, _ = connection.request("release", REQUEST)
    assert first != second
    assert text.endswith(b"\n")
    assert text.count(b"\n") == 1
    assert msgspec.json.decode(text) == {
        "jsonrpc": "2.0",
        "id": first,
        "method": "release",
        "params": {"attachment": "1.1"},
    }


def test_what_is_no_text_is_refused_and_leaves_nothing_pending():
    connection = Connection()
    with pytest.raises(InvalidArgument, match="no UTF-8"):
        connection.request("renew", AttachmentParams(attachment="a\udcff"))
    assert connection.pending == 0
    assert connection.request("renew", AttachmentParams(attachment="a"))[0] == 1


def test_answers_may_overtake_each_other_and_are_read_by_their_method():
    connection = Connection()
    first, _ = connection.request("release", REQUEST)
    second, _ = connection.request("heartbeat", REQUEST)
    data = line(id=second, result={"attachments": ["a"]}) + line(id=first, result={})
    assert connection.feed(data[:20]) == []
    assert connection.feed(data[20:]) == [
        Answer(second, "heartbeat", HeartbeatResult(attachments=["a"])),
        Answer(first, "release", Empty()),
    ]
    assert connection.pending == 0


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_an_error_comes_back_as_what_it_was(code):
    connection = Connection()
    number, _ = connection.request("release", REQUEST)
    error = BY_CODE[code]("what", reason="why", retry_after_ms=7)
    (answer,) = connection.feed(line(id=number, error=to_rpc(error)))
    assert isinstance(answer, Answer)
    assert type(answer.error) is type(error)
    assert answer.error is not None
    assert (answer.error.message, answer.error.reason) == ("what", "why")
    assert answer.error.retry_after_ms == 7


@pytest.mark.parametrize("data", [None, 5, [], {}, {"code": "x"}])
def test_a_protocol_error_without_a_code_of_ours_is_an_internal_one(data):
    connection = Connection()
    number, _ = connection.request("release", REQUEST)
    error = {"code": -32601, "message": "no such method", "data": data}
    (answer,) = connection.feed(line(id=number, error=error))
    assert isinstance(answer, Answer)
    assert isinstance(answer.error, InternalError)
    assert "no such method" in answer.error.message


def test_an_error_of_a_later_version_keeps_its_text():
    connection = Connection()
    number, _ = connection.request("release", REQUEST)
    data = {"code": "of_tomorrow", "message": "later", "retryable": True}
    (answer,) = connection.feed(line(id=number, error={"code": 1, "message": "", "data": data}))
    assert isinstance(answer, Answer)
    assert isinstance(answer.error, InternalError)
    assert answer.error.message == "later"


def test_notifications_come_with_their_params_and_unknown_ones_not_at_all():
    connection = Connection()
    deliver = {
        "attachment": "a",
        "epoch": "e",
        "subscription": 1,
        "channel": "c",
        "through": 2,
        "messages": [{"seq": 2}],
    }
    note, epoch = connection.feed(
        line(method="deliver", params=deliver)
        + line(method="of_tomorrow", params={})
        + line(method="epoch", params={"epoch": "1.2"})
    )
    assert isinstance(note, Note)
    assert isinstance(note.params, DeliverNote)
    assert bytes(note.params.messages[0]) == b'{"seq":2}'
    assert epoch == Note(EpochNote(epoch="1.2"))


def test_an_answer_to_nothing_is_nothing():
    connection = Connection()
    assert connection.feed(line(id=99, result={}) + line(id="x", result={}) + line(id=None)) == []


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\n",
        b"[]\n",
        b'{"method":"deliver","params":{"attachment":5}}\n',
        b'{"id":1,"result":5}\n',
        b"x" * (9 << 20) + b"\n",
    ],
)
def test_what_no_daemon_would_send_is_an_internal_error(data):
    connection = Connection()
    connection.request("release", REQUEST)
    with pytest.raises(InternalError):
        connection.feed(data)


def test_the_error_of_a_busy_daemon_says_when_to_come_again():
    connection = Connection()
    number, _ = connection.request("release", REQUEST)
    raw = to_rpc(RateLimited("slowly", retry_after_ms=12))
    (answer,) = connection.feed(line(id=number, error=raw))
    assert isinstance(answer, Answer)
    assert answer.error is not None
    assert answer.error.retryable
    assert answer.error.retry_after_ms == 12
