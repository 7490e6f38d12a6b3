"""Bad input at an adapter's stdin: its documented error, and the connection goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.stdio import Adapter, ToolError

KIB = 1024


@pytest.fixture(scope="module")
def one_adapter(bus: Daemon) -> Iterator[Adapter]:
    with Adapter(bus.environment) as adapter:
        yield adapter


@pytest.fixture
def adapter(one_adapter: Adapter) -> Iterator[Adapter]:
    yield one_adapter
    assert one_adapter.call("whoami")["display_name"]  # still the same process on the same pipes


def number_of(answer: dict[str, Any]) -> int:
    code: int = answer["error"]["code"]
    return code


@pytest.mark.parametrize("line", [b"hello", b"\xff\xfe", b"\0"], ids=["text", "no UTF-8", "NUL"])
def test_a_line_that_is_not_json_is_a_parse_error(adapter: Adapter, line: bytes) -> None:
    adapter.write(line + b"\n")
    assert number_of(adapter.answer(None)) == -32700


def test_a_broken_line_is_answered_by_its_id_where_that_can_be_read(adapter: Adapter) -> None:
    adapter.write(b'{"jsonrpc":"2.0","id":"broken","method":"tools/call","params":{"na\n')
    assert number_of(adapter.answer("broken")) == -32700


def test_a_line_of_nine_mib_is_refused_and_thrown_away(adapter: Adapter) -> None:
    filler = b"x" * (9 * KIB * KIB)
    call = b'{"name":"send","arguments":{"channel":"general","content":"%b"}}' % filler
    adapter.write(b'{"jsonrpc":"2.0","id":"long","method":"tools/call","params":%b}\n' % call)
    assert number_of(adapter.answer("long")) == -32600


def test_an_unknown_method_is_not_found(adapter: Adapter) -> None:
    assert number_of(adapter.answer(adapter.request("tools/frobnicate"))) == -32601


def test_an_unknown_tool_is_an_invalid_param(adapter: Adapter) -> None:
    answer = adapter.answer(adapter.request("tools/call", name="frobnicate", arguments={}))
    assert number_of(answer) == -32602


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        ({"channel": "general", "content": 5}, "invalid_argument", "content"),
        ({"channel": "general"}, "invalid_argument", "content"),
        ({"channel": "general", "content": "x", "colour": 1}, "invalid_argument", "colour"),
        ({"channel": "nowhere", "content": "x"}, "not_found", "nowhere"),
        ({"channel": "general", "content": "x" * 64 * KIB}, "message_too_large", "max_message_kib"),
    ],
    ids=["wrong type", "missing", "unknown argument", "unknown channel", "too large"],
)
def test_a_send_that_cannot_be_is_refused_by_name(
    adapter: Adapter, arguments: dict[str, Any], code: str, named: str
) -> None:
    with pytest.raises(ToolError) as refusal:
        adapter.call("send", **arguments)
    assert refusal.value.code == code
    assert not refusal.value.retryable
    assert named in str(refusal.value)


@pytest.mark.parametrize(
    "arguments", [{"max_messages": 0}, {"max_messages": 1001}, {"wait_seconds": 61}, {"max_kib": 0}]
)
def test_a_recv_out_of_range_names_the_range(adapter: Adapter, arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolError) as refusal:
        adapter.call("recv", **arguments)
    assert refusal.value.code == "invalid_argument"
    assert next(iter(arguments)) in str(refusal.value)


def test_a_lone_surrogate_is_answered_and_not_stored(adapter: Adapter) -> None:
    call = b'{"name":"send","arguments":{"channel":"general","content":"\\ud800"}}'
    adapter.write(b'{"jsonrpc":"2.0","id":"lone","method":"tools/call","params":%b}\n' % call)
    answer = adapter.answer("lone")
    assert "error" in answer or answer["result"]["isError"]
