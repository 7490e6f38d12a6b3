"""Messages in part: whole JSON within their room, every character reachable."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.adapter.excerpts import fit, piece


def envelope(content: str, **more: Any) -> bytes:
    return msgspec.json.encode({"message_id": "m", "seq": 1, "content": content} | more)


# cut


def test_a_message_that_fits_is_not_touched():
    message = b'{"content":  "x"}'
    assert fit(message, len(message)) is message


def test_a_cut_message_has_the_rest_of_itself_and_its_length():
    cut = json.loads(fit(envelope("\u00e9" * 5000, reply_to="m0", metadata={"a": 1}), 2000))
    assert cut["content_truncated"] is True
    assert cut["content_length"] == 5000
    assert 900 < len(cut["content"]) < 1000
    assert (cut["reply_to"], cut["metadata"]) == ("m0", {"a": 1})


def test_a_cut_uses_the_room_to_the_last_character():
    assert len(fit(envelope("x" * 5000), 1000)) == 1000


def test_metadata_that_alone_is_too_large_is_left_out_and_said_so():
    message = envelope("x" * 100, metadata={"a": "y" * 5000}, references=[{"kind": "url"}] * 3)
    cut = json.loads(fit(message, 2000))
    assert cut["metadata_omitted"] is True
    assert cut["references_omitted"] is True
    assert cut["content"] == "x" * 100


# read piece by piece

contents = st.text() | st.text('\\"\x00\n\u2028\u00e9\U0001f600', min_size=500, max_size=2000)


@given(contents, st.integers(300, 1000), st.booleans())
def test_pieces_add_up_to_the_content(content: str, room: int, large: bool):
    message = envelope(content, **({"metadata": {"a": "y" * 2000}} if large else {}))
    read, offset = "", 0
    while True:
        part = piece(message, offset, room)
        document = json.loads(part)
        assert len(part) <= room
        assert document["content_length"] == len(content)
        read += document["content"]
        if "next_offset" not in document:
            break
        assert document["next_offset"] > offset
        offset = document["next_offset"]
    assert read == content


@pytest.mark.parametrize("offset", [5, 6, 10**12])
def test_beyond_the_end_there_is_nothing(offset: int):
    document = json.loads(piece(envelope("12345"), offset, 4096))
    assert (document["content"], document["content_length"]) == ("", 5)
    assert "next_offset" not in document


def test_offsets_count_characters():
    content = "\U0001f600" * 10 + "end"
    assert json.loads(piece(envelope(content), 10, 4096))["content"] == "end"


def test_a_piece_has_at_least_a_character_whatever_the_room():
    document = json.loads(piece(envelope("\x00\x00"), 0, 10))
    assert (document["content"], document["next_offset"]) == ("\x00", 1)
