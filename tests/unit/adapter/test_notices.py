"""Notices are bounded, go back when they are not shown, and never show what is known to be gone."""

from __future__ import annotations

import msgspec
import pytest

from agentbus.adapter.notices import LEAST_ROOM, MAX_BYTES, MAX_NOTICES, Notices
from agentbus.wire.rpc import NoticeNote

ROOM = 1 << 20


def changed(memory: str, revision: int = 2, size: int = 0) -> NoticeNote:
    message = msgspec.json.encode({"seq": 1, "content": f"{memory} {revision}" + "x" * size})
    return NoticeNote(
        attachment="a",
        kind="memory_changed",
        channel="memory",
        memory_id=memory,
        revision=revision,
        message=msgspec.Raw(message),
    )


def deleted(memory: str) -> NoticeNote:
    return NoticeNote(attachment="a", kind="memory_deleted", channel="memory", memory_id=memory)


def warning(text: str) -> NoticeNote:
    return NoticeNote(attachment="a", kind="capacity", channel="general", text=text)


def filled(*notes: NoticeNote) -> Notices:
    notices = Notices()
    for note in notes:
        notices.add(note)
    return notices


def shown(told) -> list[dict]:
    return [msgspec.json.decode(notice.shown) for notice in told.notices]


def test_they_come_in_order_with_what_they_say():
    told = filled(changed("k"), deleted("l"), warning("full")).take(ROOM, alone=True)
    assert shown(told) == [
        {"kind": "memory_changed", "channel": "memory", "memory_id": "k", "revision": 2},
        {"kind": "memory_deleted", "channel": "memory", "memory_id": "l"},
        {"kind": "capacity", "channel": "general", "text": "full"},
    ]
    assert told.dropped == 0


def test_the_oldest_go_when_there_are_too_many_and_how_many_is_told_once():
    notices = filled(*(changed(str(number)) for number in range(MAX_NOTICES + 3)))
    assert len(notices) == MAX_NOTICES
    told = notices.take(ROOM, alone=True)
    assert told.dropped == 3
    assert told.notices[0].memory == "3"
    notices.add(deleted("k"))
    assert notices.take(ROOM, alone=True).dropped == 0


def test_many_edits_of_one_memory_are_bounded_like_others():
    notices = filled(*(changed("k", number) for number in range(MAX_NOTICES + 6)))
    told = notices.take(ROOM, alone=True)
    assert (len(told.notices), told.dropped) == (MAX_NOTICES, 6)
    assert [notice.message is not None for notice in told.notices] == [False] * 63 + [True]


def test_large_ones_are_bounded_by_bytes():
    notices = filled(*(changed(str(number), size=1 << 20) for number in range(6)))
    assert notices.size <= MAX_BYTES
    assert notices.take(1 << 30, alone=True).dropped == 3


def test_one_that_is_larger_than_all_bounds_stays():
    assert len(filled(changed("k", size=MAX_BYTES))) == 1


@pytest.mark.parametrize("later", [changed("k", 3), deleted("k")])
def test_contents_that_a_later_one_has_made_obsolete_are_gone(later: NoticeNote):
    told = filled(changed("k", 2), changed("other"), later).take(ROOM, alone=True)
    first = told.notices[0]
    assert first.message is None
    assert msgspec.json.decode(first.shown)["superseded"] is True
    assert told.notices[1].message is not None


def test_those_that_were_not_shown_go_back_to_the_head():
    notices = filled(changed("a"), changed("b"))
    told = notices.take(changed_size("a"), alone=True)
    assert [notice.memory for notice in told.notices] == ["a"]
    notices.restore(told)
    assert [notice.memory for notice in notices.take(ROOM, alone=True).notices] == ["a", "b"]


def changed_size(memory: str) -> int:
    return filled(changed(memory)).size


def test_what_became_obsolete_while_it_was_written_is_not_shown_when_it_goes_back():
    notices = filled(changed("k", 2), warning("x"))
    told = notices.take(ROOM, alone=True)
    assert told.holds("k")
    assert not told.holds("l")
    assert not told.holds(None)
    notices.add(changed("k", 3))
    notices.restore(told)
    again = notices.take(ROOM, alone=True)
    assert [notice.message is None for notice in again.notices] == [True, True, False]
    assert "superseded" not in shown(again)[1]


def test_dropped_ones_are_told_again_when_they_were_not_shown():
    notices = filled(*(deleted(str(number)) for number in range(MAX_NOTICES + 1)))
    told = notices.take(ROOM, alone=True)
    notices.add(deleted("new"))
    notices.restore(told)
    again = notices.take(ROOM, alone=True)
    assert (len(again.notices), again.dropped) == (MAX_NOTICES, 2)
    assert again.notices[-1].memory == "new"


def test_beside_messages_only_those_that_fit_come():
    notices = filled(changed("a"), changed("b", size=5000))
    told = notices.take(changed_size("a") + 100, alone=False)
    assert [notice.memory for notice in told.notices] == ["a"]
    assert notices.take(LEAST_ROOM - 1, alone=False).notices == []
    assert len(notices.take(LEAST_ROOM, alone=False).notices) == 1


def test_alone_the_first_comes_whatever_its_size():
    notices = filled(changed("a", size=5000), changed("b"))
    assert [notice.memory for notice in notices.take(10, alone=True).notices] == ["a"]


def test_the_end_of_an_attachment_ends_its_notices_and_they_count_as_dropped():
    notices = filled(changed("a"), deleted("b"))
    notices.clear()
    told = notices.take(ROOM, alone=True)
    assert (told.notices, told.dropped) == ([], 2)
