"""Lines that are no request are answered with the right code, to the right id where it is known."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.gateway import requests
from agentbus.gateway.requests import KINDS, Asked, Fault, overlong, read
from agentbus.wire.error_codes import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from agentbus.wire.lines import Overlong
from agentbus.wire.rpc import METHODS, Empty, SendParams

SEND = b'{"attachment":"a","channel":"c","message_id":"m","content":"x"}'


def told(fault: Fault) -> tuple[int, Any, str]:
    answer = msgspec.json.decode(fault.line)
    return answer["error"]["code"], answer["id"], answer["error"]["data"]["code"]


def fault(content: bytes) -> tuple[int, Any, str]:
    with pytest.raises(Fault) as caught:
        read(content, greeted=True)
    return told(caught.value)


def test_a_request_is_read() -> None:
    asked = read(b'{"jsonrpc":"2.0","id":"a","method":"send","params":%b}' % SEND, greeted=True)
    params = SendParams(attachment="a", channel="c", message_id="m", content="x")
    assert (asked.id, asked.method, asked.params) == ("a", "send", params)


def test_params_may_be_absent() -> None:
    asked = read(b'{"id":1,"method":"status"}', greeted=True)
    assert (asked.method, asked.params) == ("status", Empty())


MEMBERS: dict[str, list[bytes]] = {
    "jsonrpc": [b'"2.0"', b'"1.0"', b"2"],
    "id": [b"1", b'"a"', b"null", b"1.5", b'"\\u00e9"', b"9" * 30],
    "method": [b'"send"', b'"heartbeat"', b'"status"', b'"s\\u0065nd"', b'"nope"', b"7"],
    "params": [SEND, b"{}", b"[]", b'{"content":7}', SEND[:-1] + b',"more":[{}]}', SEND[1:]],
    "others": [b"0", b'{"method":"send"}'],
}


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """Objects as they come, with members twice, missing or in any order, and spoilt ones."""
    names = draw(st.permutations([*MEMBERS, *draw(st.lists(st.sampled_from([*MEMBERS])))]))
    names = names[: draw(st.integers(0, len(names)))]
    space = draw(st.sampled_from([b"", b" "]))
    members = [b'"%b":%b' % (each.encode(), draw(st.sampled_from(MEMBERS[each]))) for each in names]
    line = b"{" + (b"," + space).join(members) + b"}"
    cut = draw(st.integers(0, len(line)))
    return draw(st.sampled_from([line, line, line, line[:cut] + line[cut + 1 :]]))


def outcome(how: Any, line: bytes, *, greeted: bool) -> Asked | bytes:
    try:
        found: Asked = how(line, greeted=greeted)
    except Fault as fault:
        return fault.line
    return found


@given(lines(), st.booleans())
def test_reading_in_one_pass_is_reading_in_two(line: bytes, greeted: bool) -> None:
    slowly = outcome(requests._read_again, line, greeted=greeted)
    assert outcome(read, line, greeted=greeted) == slowly


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
    assert told(overlong(line)) == (INVALID_REQUEST, 12, "message_too_large")


def test_every_method_can_be_read_in_one_pass() -> None:
    for method, kind in KINDS.items():
        line = b'{"id":1,"method":"%b","params":{}}' % method.encode()
        assert kind.method == method
        with contextlib.suppress(msgspec.ValidationError):  # params that must hold something
            assert type(requests._decoder.decode(line)) is kind
    assert KINDS.keys() == METHODS.keys()
