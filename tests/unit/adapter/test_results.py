"""Results are whole JSON within their ceiling, whatever the messages are."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.adapter import results
from agentbus.adapter.inbox import Inbox
from agentbus.wire.rpc import DeliverNote, Gap, HistoryResult, SubscribeResult


def envelope(content: str, seq: int = 1, **more: Any) -> bytes:
    return msgspec.json.encode({"message_id": f"m{seq}", "seq": seq, "content": content} | more)


def received(*messages: bytes, ceiling: int = 4096, gaps: list[Gap] | None = None) -> Any:
    inbox = Inbox()
    inbox.attach("e", [])
    inbox.deliver(
        DeliverNote(
            attachment="a",
            epoch="e",
            subscription=1,
            channel="c",
            through=len(messages),
            messages=[msgspec.Raw(message) for message in messages],
            gaps=gaps or [],
        )
    )
    batch = inbox.take(1000, ceiling - results.FRAME)
    shown = results.received(batch, ceiling, more=len(inbox) > 0)
    assert len(shown) <= ceiling
    return json.loads(shown)


texts = st.text() | st.text('\\"\x00\n\u2028é\U0001f600', min_size=1000, max_size=3000)


@given(st.lists(texts, max_size=5), st.integers(4, 12))
def test_a_result_never_passes_its_ceiling(contents, kib):
    messages = [envelope(content, index + 1) for index, content in enumerate(contents)]
    shown = received(*messages, ceiling=kib * 1024)
    for message, content in zip(shown["messages"], contents, strict=False):
        assert content.startswith(message["content"])
        assert ("content_truncated" in message) == (message["content"] != content)


def test_messages_are_as_they_came_byte_for_byte():
    message = b'{"seq": 1,  "content":"\\u0041", "x":1.0}'
    inbox_result = received(message)
    assert inbox_result["messages"] == [json.loads(message)]


def test_gaps_are_counted_and_shown():
    gap = Gap(channel="c", after_seq=0, resumed_at_seq=3, lost=2)
    shown = received(envelope("x", 3), gaps=[gap])
    assert shown["gaps"] == [{"channel": "c", "after_seq": 0, "resumed_at_seq": 3, "lost": 2}]


def test_a_cut_message_has_the_rest_of_itself_and_its_length():
    cut = json.loads(results.fit(envelope("é" * 5000, reply_to="m0", metadata={"a": 1}), 2000))
    assert cut["content_truncated"] is True
    assert cut["content_length"] == 5000
    assert 900 < len(cut["content"]) < 1000
    assert (cut["reply_to"], cut["metadata"]) == ("m0", {"a": 1})


def test_a_cut_uses_the_room_to_the_last_character():
    room = 1000
    whole = results.fit(envelope("x" * 5000), room)
    assert len(whole) == room


def test_metadata_that_alone_is_too_large_is_left_out_and_said_so():
    message = envelope("x" * 100, metadata={"a": "y" * 5000}, references=[{"kind": "url"}] * 3)
    cut = json.loads(results.fit(message, 2000))
    assert cut["metadata_omitted"] is True
    assert cut["references_omitted"] is True
    assert cut["content"] == "x" * 100


@pytest.mark.parametrize(("newest", "kept"), [(True, [7, 8, 9]), (False, [0, 1, 2])])
def test_history_keeps_its_near_end(newest, kept):
    messages = [msgspec.Raw(envelope("x" * 1200, seq)) for seq in range(10)]
    result = HistoryResult(messages=messages, more=False)
    shown = json.loads(results.told(result, 4096, newest=newest))
    assert [message["seq"] for message in shown["messages"]] == kept
    assert shown["more"] is True


def test_history_cuts_a_message_that_is_larger_alone():
    result = HistoryResult(messages=[msgspec.Raw(envelope("x" * 9000))], more=False)
    raw = results.told(result, 4096, newest=True)
    assert len(raw) <= 4096
    shown = json.loads(raw)
    assert shown["messages"][0]["content_truncated"] is True
    assert shown["more"] is False


def test_plain_results_leave_out_what_is_not_there():
    result = SubscribeResult(
        subscription=1, channel="c", position=3, expires_at="t", created=False, include_own=False
    )
    assert json.loads(results.plain(result, "subscription")) == {
        "channel": "c",
        "position": 3,
        "expires_at": "t",
        "created": False,
        "include_own": False,
    }
