"""Lines that are no request are answered with the right code, to the right id where it is known."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.gateway.requests import Fault, decoders, parse
from agentbus.wire.error_codes import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from agentbus.wire.lines import Overlong
from agentbus.wire.rpc import METHODS


def fault(content: bytes | Overlong) -> tuple[int, Any, str]:
    with pytest.raises(Fault) as caught:
        parse(content)
    answer = msgspec.json.decode(caught.value.line)
    return answer["error"]["code"], answer["id"], answer["error"]["data"]["code"]


def test_a_request_is_read() -> None:
    request = parse(b'{"jsonrpc":"2.0","id":"a","method":"send","params":{"x":1}}')
    assert (request.id, request.method, bytes(request.params)) == ("a", "send", b'{"x":1}')


def test_params_may_be_absent() -> None:
    assert bytes(parse(b'{"id":1,"method":"status"}').params) == b"{}"


@pytest.mark.parametrize(
    ("line", "code", "identity"),
    [
        (b"junk", PARSE_ERROR, None),
        (b'{"id":1,"method":"x"', PARSE_ERROR, 1),
        (b"\xff\xfe", PARSE_ERROR, None),
        (b"[" * 100_000, INVALID_REQUEST, None),
        (b'{"id":2,"method":"x","params":' + b"[" * 100_000, PARSE_ERROR, 2),
        (b'[{"id":1,"method":"x"}]', INVALID_REQUEST, None),
        (b'{"id":1}', INVALID_REQUEST, 1),
        (b'{"id":1.5,"method":"x"}', INVALID_REQUEST, None),
        (b'{"id":true,"method":"x"}', INVALID_REQUEST, None),
        (b'{"id":"q","method":7}', INVALID_REQUEST, "q"),
        (b'{"jsonrpc":"1.0","id":3,"method":"x"}', INVALID_REQUEST, 3),
        (b'{"jsonrpc": "2.0", "method": "send", "id": 4, "params"}', PARSE_ERROR, 4),
        (b'{"params":{"id":9},"id":1.5,"method":"x"}', INVALID_REQUEST, None),
        (b'{"id":1,"method":"send","params":{"content":"\\ud800"}}', INVALID_PARAMS, 1),
        (b'{"id":"a\x0cb","method":"x"}', PARSE_ERROR, None),
        (b'{"id":"\xff","method":"x"}', PARSE_ERROR, None),
        (b'{"id":"a\x7f\xc3\xa9","method":7}', INVALID_REQUEST, "a\x7f\u00e9"),
        (b'{"id":007,"method":"x"}', PARSE_ERROR, None),
    ],
)
def test_what_is_no_request_is_answered_so(line: bytes, code: int, identity: object) -> None:
    assert fault(line) == (code, identity, "invalid_argument")


@given(st.binary(max_size=8) | st.text(max_size=4).map(str.encode))
def test_whatever_stands_where_an_id_would_the_answer_is_json(identity: bytes) -> None:
    line = b'{"jsonrpc":"2.0","id":"%b","method":7}' % identity
    code, _, _ = fault(line)
    assert code in (PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS)


def test_an_overlong_line_is_too_large_and_answered_to_its_id() -> None:
    line = Overlong(8_388_608, b'{"jsonrpc":"2.0","id":12,"method":"send","params":{"content":"')
    assert fault(line) == (INVALID_REQUEST, 12, "message_too_large")


def test_there_is_a_decoder_for_every_method() -> None:
    assert decoders().keys() == METHODS.keys()
