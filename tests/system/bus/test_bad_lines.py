"""Bad input at the daemon's socket: its documented error, and the connection goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from agentbus.wire.rpc import MAX_LINE
from tests.support.daemon import Daemon
from tests.support.peers import Peer

KIB = 1024


@pytest.fixture
def peer(bus: Daemon) -> Iterator[Peer]:
    with bus.peer() as peer:
        yield peer
        assert peer.call("status")["status"]["state"] == "ready"  # still on the same connection


@pytest.mark.parametrize("line", [b"hello", b"\xff\xfe", b"\0"], ids=["text", "no UTF-8", "NUL"])
def test_a_line_that_is_not_json_is_a_parse_error(peer: Peer, line: bytes) -> None:
    peer.write(line + b"\n")
    assert peer.refusal(None).number == -32700


def test_a_broken_line_is_answered_by_its_id_where_that_can_be_read(peer: Peer) -> None:
    peer.write(b'{"jsonrpc":"2.0","id":"broken","method":"send","params":{"content":"\n')
    assert peer.refusal("broken").number == -32700


def test_half_of_a_surrogate_pair_is_an_invalid_param(peer: Peer) -> None:
    peer.write(b'{"jsonrpc":"2.0","id":3,"method":"send","params":{"content":"\\ud800"}}\n')
    assert peer.refusal(3).code == "invalid_argument"


@pytest.mark.parametrize("line", [b"[]", b"1", b'"text"', b"null", b'{"id":7}', b"{}"])
def test_json_that_is_no_request_is_an_invalid_request(peer: Peer, line: bytes) -> None:
    peer.write(line + b"\n")
    assert peer.refusal(7 if b"7" in line else None).number == -32600


def test_a_line_of_nine_mib_is_refused_and_thrown_away(peer: Peer) -> None:
    filler = b"x" * (9 * KIB * KIB)
    peer.write(b'{"jsonrpc":"2.0","id":5,"method":"send","params":{"content":"%b"}}\n' % filler)
    refusal = peer.refusal(5)
    assert refusal.number == -32600
    assert str(MAX_LINE) in str(refusal)


def test_an_unknown_method_is_named(peer: Peer) -> None:
    refusal = peer.refusal(peer.request("memory.frobnicate"))
    assert refusal.number == -32601
    assert "memory.frobnicate" in str(refusal)


def test_a_wrong_type_is_an_invalid_param(peer: Peer) -> None:
    attached = peer.attach("wrong-type")
    number = peer.request(
        "send", attachment=attached.id, channel="general", message_id="wrong-type", content=5
    )
    refusal = peer.refusal(number)
    assert refusal.number == -32602
    assert refusal.code == "invalid_argument"
    assert "content" in str(refusal)


def test_an_unknown_channel_is_not_found(peer: Peer) -> None:
    attached = peer.attach("unknown-channel")
    number = peer.request(
        "send", attachment=attached.id, channel="nowhere", message_id="unknown", content="x"
    )
    refusal = peer.refusal(number)
    assert (refusal.number, refusal.code) == (-32000, "not_found")
    assert "nowhere" in str(refusal)


def test_a_message_that_is_too_large_is_refused_and_the_largest_is_not(peer: Peer) -> None:
    attached = peer.attach("too-large")
    params = {"attachment": attached.id, "channel": "general"}
    number = peer.request("send", **params, message_id="too-large", content="x" * 64 * KIB)
    refusal = peer.refusal(number)
    assert (refusal.number, refusal.code) == (-32000, "message_too_large")
    assert not refusal.data["retryable"]
    assert attached.send("general", "large", "x" * 63 * KIB)["duplicate"] is False


def test_without_an_attachment_nothing_is_sent(peer: Peer) -> None:
    params = {"channel": "general", "message_id": "stranger", "content": "x"}
    refusal = peer.refusal(peer.request("send", attachment="9.9", **params))
    assert refusal.code == "stale_attachment"


def test_before_hello_only_status_and_stop_are_answered(bus: Daemon) -> None:
    with bus.peer(greet=False) as peer:
        assert peer.call("status")["status"]["state"] == "ready"
        number = peer.request("register", application="tests", session="rude")
        assert peer.refusal(number).code == "invalid_argument"


def test_many_lines_in_one_write_and_one_line_in_many_are_the_same(peer: Peer) -> None:
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": f"n{number}", "method": "heartbeat"}) + "\n"
        for number in range(20)
    ]
    peer.write("".join(lines[:10]).encode())
    for byte in "".join(lines[10:]).encode():
        peer.write(bytes([byte]))
    for number in range(20):
        assert peer.result(f"n{number}")["attachments"] == []
