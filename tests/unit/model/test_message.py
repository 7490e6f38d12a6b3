"""Envelopes, their size, fingerprints and times."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.model.message import (
    SENT_AT_WIDTH,
    WIDEST_SEQ,
    Message,
    Payload,
    Reference,
    encode_envelope,
    envelope_size,
    fingerprint,
    rfc3339,
)


def message(seq: int, content: str = "") -> Message:
    return Message(
        message_id="a",
        seq=seq,
        channel="general",
        sender="Sam",
        agent="Sam",
        application="codex",
        session="n1",
        sent_at=rfc3339(0),
        type="message",
        content=content,
        thread="a",
    )


@given(seq=st.integers(1, WIDEST_SEQ), content=st.text(max_size=50))
def test_a_message_has_one_size_at_whatever_position(seq: int, content: str) -> None:
    widest = encode_envelope(message(WIDEST_SEQ, content))
    assert envelope_size(encode_envelope(message(seq, content)), seq) == len(widest)


def test_an_envelope_has_no_member_that_says_nothing() -> None:
    decoded = msgspec.json.decode(encode_envelope(message(1)))
    assert set(decoded) == {
        "message_id",
        "seq",
        "channel",
        "sender",
        "agent",
        "application",
        "session",
        "sent_at",
        "type",
        "content",
        "thread",
    }


@given(st.integers(0, 4_000_000_000_000))
def test_a_time_is_shown_to_the_millisecond_in_utc(milliseconds: int) -> None:
    text = rfc3339(milliseconds)
    assert len(text) == SENT_AT_WIDTH
    assert text.endswith("Z")
    seconds = datetime.fromisoformat(text).replace(microsecond=0).timestamp()
    assert int(seconds) * 1000 + int(text[-4:-1]) == milliseconds


def test_times_sort_as_text() -> None:
    assert rfc3339(1_796_058_565_009) == "2026-11-30T17:09:25.009Z"
    assert datetime.fromtimestamp(1_796_058_565, UTC).isoformat().startswith("2026-11-30T17:09:25")


@pytest.mark.parametrize(
    "other",
    [
        ("memory", Payload("x", metadata={"a": 1, "b": 2})),
        ("general", Payload("y", metadata={"a": 1, "b": 2})),
        ("general", Payload("x", metadata={"a": 1, "b": 3})),
        ("general", Payload("x", type="note", metadata={"a": 1, "b": 2})),
        ("general", Payload("x", reply_to="z", metadata={"a": 1, "b": 2})),
        ("general", Payload("x", metadata={"a": 1, "b": 2}, references=[Reference("url", "u")])),
    ],
)
def test_a_fingerprint_is_of_what_the_sender_chose(other: tuple[str, Payload]) -> None:
    mine = fingerprint("general", Payload("x", metadata={"a": 1, "b": 2}))
    assert len(mine) == 16
    assert fingerprint("general", Payload("x", metadata={"b": 2, "a": 1})) == mine
    assert fingerprint(*other) != mine
