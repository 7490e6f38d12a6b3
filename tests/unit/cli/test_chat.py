from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from agentbus.cli.chat import EXCERPT, GUTTER, REMEMBERED, Chat, colour, local
from agentbus.client.tailing import Changed, Remark
from agentbus.model.message import Message
from agentbus.wire.rpc import Gap

AT = "2026-11-30T16:40:27.123Z"


def message(content: str = "hello", **more: Any) -> Message:
    fields = {
        "message_id": "m1",
        "seq": 1,
        "channel": "general",
        "sender": "Sam",
        "agent": "Sam",
        "application": "tests",
        "session": "s",
        "sent_at": AT,
        "type": "message",
        "content": content,
        "thread": "m1",
    }
    return Message(**(fields | more))


def shown(lines: list[Text]) -> list[str]:
    return [line.plain for line in lines]


@pytest.fixture
def chat() -> Chat:
    """One that has shown the day already."""
    chat = Chat()
    chat.lines(message())
    return chat


def clock() -> str:
    return local(AT).strftime("%H:%M:%S")


def test_a_message_has_time_channel_and_sender_before_its_text(chat: Chat) -> None:
    assert shown(chat.lines(message())) == [f"{clock()} general  Sam: hello"]


def test_a_day_is_announced_once() -> None:
    chat = Chat()
    first, line = shown(chat.lines(message()))
    assert first.startswith("---")
    assert str(local(AT).year) in first
    assert shown(chat.lines(message())) == [line]
    assert len(chat.lines(message(sent_at="2026-12-24T16:40:27.123Z"))) == 2


def test_further_lines_stand_under_the_text(chat: Chat) -> None:
    lines = shown(chat.lines(message("one\n  two\n\n三")))
    assert lines[1:] == [f"{GUTTER}  two", GUTTER, f"{GUTTER}三"]


@given(st.text(), st.text(min_size=1), st.text(min_size=1))
def test_no_text_or_name_imitates_another_message(content: str, sender: str, channel: str) -> None:
    chat = Chat()
    chat.lines(message())
    head, *rest = chat.lines(message(content, sender=sender, channel=channel))
    assert all(line.plain.startswith(GUTTER) for line in rest)
    for line in (head, *rest):
        assert line.plain == line.plain.replace("\n", "")
        assert all(each.isprintable() for each in line.plain)


def test_an_answer_shows_what_it_answers(chat: Chat) -> None:
    chat.lines(message("Is it green? " * 10, message_id="question"))
    lines = shown(chat.lines(message("yes", reply_to="question")))
    assert lines[0] == f"{clock()} general  Sam:"
    assert lines[1].startswith(f"{GUTTER}> Sam: Is it green?")
    assert len(lines[1]) == len(f"{GUTTER}> Sam: ") + EXCERPT
    assert lines[2] == f"{GUTTER}yes"


def test_an_answer_to_what_was_not_shown_names_it(chat: Chat) -> None:
    assert shown(chat.lines(message(reply_to="m0")))[1] == f"{GUTTER}> m0"


def test_only_the_latest_are_remembered(chat: Chat) -> None:
    for number in range(REMEMBERED + 1):
        chat.lines(message(message_id=f"n{number}"))
    assert shown(chat.lines(message(reply_to="n0")))[1] == f"{GUTTER}> n0"
    assert shown(chat.lines(message(reply_to="n2")))[1] == f"{GUTTER}> Sam: hello"


def test_types_and_memories_are_told(chat: Chat) -> None:
    (line,) = shown(chat.lines(message(type="log", memory_id="k", revision=3)))
    assert line == f"{clock()} general  Sam (log, memory, revision 3): hello"
    (line,) = shown(chat.lines(message(memory_id="k", revision=1)))
    assert line == f"{clock()} general  Sam (memory): hello"


def test_whatever_is_no_message_stands_apart(chat: Chat) -> None:
    gap = Gap(channel="general", after_seq=1, resumed_at_seq=9, lost=7)
    items = [gap, Remark("the bus was\nstopped"), Changed("notes", "k", None)]
    assert [line for item in items for line in shown(chat.lines(item))] == [
        f"{GUTTER}-- 7 messages of general were removed",
        f"{GUTTER}-- the bus was stopped",
        f"{GUTTER}-- notes: memory k was deleted",
    ]
    changed = Changed("notes", "k", message("new", memory_id="k", revision=2))
    assert shown(chat.lines(changed)) == [f"{clock()} general  Sam (memory, revision 2): new"]


def test_a_sender_keeps_a_colour() -> None:
    assert colour("Sam") == colour("Sam")
    assert len({colour(f"agent{number}") for number in range(50)}) > 3
