"""Replies come out as they went in, however the bytes were cut."""

from __future__ import annotations

import itertools

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.mirror.resp import Refused, ReplyDecoder, pack

STREAM = b"+OK\r\n:12\r\n$-1\r\n*3\r\n$4\r\na\r\nb\r\n-ERR no\r\n*1\r\n:1\r\n-OOM full\r\n"
REPLIES = [b"OK", 12, None, [b"a\r\nb", Refused("ERR no"), [1]], Refused("OOM full")]


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_replies_survive_any_cutting_of_the_stream(places: list[int]) -> None:
    decoder = ReplyDecoder()
    edges = sorted({0, len(STREAM), *places})
    parts = [STREAM[a:b] for a, b in itertools.pairwise(edges)]
    assert [reply for part in parts for reply in decoder.feed(part)] == REPLIES


def test_what_is_no_reply_is_an_error() -> None:
    with pytest.raises(hiredis.ProtocolError):
        ReplyDecoder().feed(b"HTTP/1.1 400 Bad Request\r\n")


def test_commands_are_packed_one_after_the_other_with_any_bytes_in_them() -> None:
    packed = pack([(b"PING",), (b"XADD", b"k", b"\r\n\0\xff")])
    assert packed == b"*1\r\n$4\r\nPING\r\n*3\r\n$4\r\nXADD\r\n$1\r\nk\r\n$4\r\n\r\n\0\xff\r\n"


def test_a_refusal_is_shown_without_the_arguments_it_quotes() -> None:
    refused = Refused("ERR unknown command 'XADD', with args beginning with: 's:1' 'secret'")
    assert refused.brief == "ERR unknown command 'XADD'"
