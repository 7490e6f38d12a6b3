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
from agentbus.adapter.notices import Notices, Told
from agentbus.wire.rpc import (
    DeliverNote,
    DiscoveredAgent,
    DiscoveredSession,
    DiscoverResult,
    Gap,
    HistoryResult,
    NoticeNote,
    SearchItem,
    SubscribeResult,
)


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
    shown = results.received(batch, Told([]), ceiling, more=len(inbox) > 0)
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


def changed(memory: str, content: str, revision: int = 2) -> NoticeNote:
    return NoticeNote(
        attachment="a",
        kind="memory_changed",
        channel="memory",
        memory_id=memory,
        revision=revision,
        message=msgspec.Raw(envelope(content, memory_id=memory, revision=revision)),
    )


def with_notices(*notes: NoticeNote, room: int) -> Any:
    notices = Notices()
    for note in notes:
        notices.add(note)
    told = notices.take(room - results.FRAME, alone=True)
    shown = results.received(Inbox().take(1, 0), told, room, more=False)
    assert len(shown) <= room
    return json.loads(shown)


def test_notices_are_shown_with_the_message_they_are_about():
    (notice,) = with_notices(changed("k", "new"), room=4096)["notices"]
    assert notice["message"]["content"] == "new"
    del notice["message"]
    assert notice == {
        "kind": "memory_changed",
        "channel": "memory",
        "memory_id": "k",
        "revision": 2,
    }


@given(st.lists(texts, min_size=1, max_size=4), st.integers(4, 12))
def test_notices_never_pass_the_ceiling(contents, kib):
    notes = [changed(str(number), content) for number, content in enumerate(contents)]
    shown = with_notices(*notes, room=kib * 1024)["notices"]
    assert shown
    for notice, content in zip(shown, contents, strict=False):
        assert content.startswith(notice["message"]["content"])


def test_a_search_result_is_the_message_with_its_snippet():
    item = SearchItem(message=msgspec.Raw(envelope("a long text")), snippet='"long"')
    assert json.loads(results.found(item)) == {
        "message_id": "m1",
        "seq": 1,
        "content": "a long text",
        "snippet": '"long"',
    }


@given(texts, st.text(max_size=200))
def test_a_search_result_that_is_larger_alone_is_cut_and_keeps_its_snippet(content, snippet):
    item = SearchItem(message=msgspec.Raw(envelope(content)), snippet=snippet)
    shown = results.found(item, 3000)
    assert len(shown) <= 3000
    assert json.loads(shown)["snippet"] == snippet


def crowd(agents: int, sessions: int) -> DiscoverResult:
    each = DiscoveredSession(
        display_name="Sam", application="a", session="s" * 100, attached=True, last_seen="t"
    )
    return DiscoverResult(
        agents=[
            DiscoveredAgent(agent=f"Sam{number}", sessions=[each] * sessions)
            for number in range(agents)
        ]
    )


@pytest.mark.parametrize(
    ("agents", "sessions", "more"), [(0, 0, False), (3, 5, False), (3, 90, True), (500, 2, True)]
)
def test_as_many_agents_are_shown_as_there_is_room_for(agents, sessions, more):
    shown = results.discovered(crowd(agents, sessions), 8192)
    assert len(shown) <= 8192
    document = json.loads(shown)
    assert document["more"] is more
    assert bool(document["agents"]) == bool(agents)
    assert all(each["sessions"] for each in document["agents"])
