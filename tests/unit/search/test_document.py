from __future__ import annotations

from typing import Any

from agentbus.model.ids import ChannelId, Seq, SessionId
from agentbus.model.message import Message, Reference, encode_envelope
from agentbus.search.document import (
    EVERY,
    document,
    reply_mark,
    sender_mark,
    thread_mark,
)
from agentbus.wire.links import RowInserted


def row(content: str = "Hello fooBar", **more: Any) -> RowInserted:
    memory_id = more.pop("memory_id", None)
    fields = {"sender": "Sam2", "agent": "Sam", "thread": "m1", **more}
    message = Message(
        message_id="m1",
        seq=3,
        channel="general",
        application="codex",
        session="s",
        sent_at="2026-11-30T16:40:27.123Z",
        type="message",
        content=content,
        **fields,
    )
    return RowInserted(
        ChannelId(7), Seq(3), SessionId(1), encode_envelope(message), memory_id, None, 42
    )


def test_a_message_is_indexed_by_its_words_and_marks() -> None:
    found = document(row())
    assert (found.id, found.place, found.kind) == (42, (7, 3), "ordinary")
    assert (found.words.split(), found.parts) == (["hello", "foobar"], "foo bar")
    assert found.marks.split() == [
        EVERY,
        "c7",
        "kordinary",
        sender_mark("Sam2"),
        thread_mark("m1"),
        sender_mark("Sam"),
    ]
    assert found.text_bytes == len(found.words) + len(found.parts)


def test_an_agent_of_the_same_name_is_marked_once() -> None:
    assert document(row(sender="Sam")).marks.split().count(sender_mark("Sam")) == 1


def test_an_answer_and_a_memory_are_marked_as_such() -> None:
    found = document(row(reply_to="m0", thread="m0", memory_id="mem"))
    assert found.kind == "memory"
    assert {"kmemory", reply_mark("m0"), thread_mark("m0")} <= set(found.marks.split())


def test_references_and_metadata_are_part_of_the_text() -> None:
    found = document(
        row(
            "x",
            references=[Reference("url", "https://a.example")],
            metadata={"k": "v w", "n": 5, "none": None},
        )
    )
    assert found.words.split() == ["x", "https", "a", "example", "v", "w"]
