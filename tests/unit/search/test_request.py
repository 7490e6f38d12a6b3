from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.errors import InvalidArgument, NotFound
from agentbus.model.channel import ChannelInfo
from agentbus.model.ids import ChannelId, Seq
from agentbus.search import document
from agentbus.search.request import Anchor, Request, build, following, milliseconds
from agentbus.wire.links import SearchFilter

CHANNELS = {"general": ChannelInfo(ChannelId(1), "general", "ordinary", Seq(5))}


def request(query: str = "x", **more: Any) -> Request:
    order, limit = more.pop("order", "newest"), more.pop("limit", 10)
    cursor, instance = more.pop("cursor", None), more.pop("instance", "i")
    filters = SearchFilter(**more)
    return build(query, filters, order, limit, cursor, 1000, CHANNELS, instance)


def test_each_filter_is_a_list_of_marks() -> None:
    found = request(
        channels=["general", "general"], sender="Sam", thread="t", reply_to="r", kind="memory"
    )
    assert found.marks == (
        ("c1",),
        ("kmemory",),
        (document.sender_mark("sam"),),
        (document.thread_mark("t"),),
        (document.reply_mark("r"),),
    )
    assert request().marks == request(channels=[]).marks == ()


def test_names_are_marked_alike_whatever_their_case_and_unlike_other_values() -> None:
    assert document.sender_mark("SAM") == document.sender_mark("sam")
    marks = {document.sender_mark("x"), document.thread_mark("x"), document.reply_mark("x")}
    assert len(marks) == 3


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("1970-01-01T00:00:01.234Z", 1234),
        (" 1970-01-01T01:00:01+01:00 ", 1000),
        ("1970-01-02", 86_400_000),
        ("1969-12-31T23:59:59Z", -1000),
    ],
)
def test_times_are_read_in_several_forms(time: str, expected: int) -> None:
    assert milliseconds(time) == expected
    assert request(since=time, until=time).since == expected


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("since", "soon"),
        ("until", "2026-99-01"),
        ("order", "best"),
        ("limit", 0),
        ("limit", 1001),
        ("cursor", "AAAA"),
        ("cursor", "!"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(argument: str, value: Any) -> None:
    with pytest.raises(InvalidArgument, match=f"^{argument} "):
        request(**{argument: value})


def test_an_unknown_channel_is_not_found() -> None:
    with pytest.raises(NotFound, match="'nowhere'"):
        request(channels=["nowhere"])


def test_a_cursor_continues_the_search_it_came_from_and_no_other() -> None:
    first = request()
    cursor = first.cursor(9, [8, 7, 6, 5, 4], 0.5)
    second = request(cursor=cursor, limit=3)
    assert second.anchor == Anchor(first.search, 9, (4, 5, 6, 7), 0.5, 5)
    third = request(cursor=second.cursor(9, [3], 0.25))
    assert third.anchor == Anchor(first.search, 9, (3,), 0.25, 6)
    for other in ({"query": "y"}, {"sender": "Sam"}, {"order": "relevance"}, {"instance": "j"}):
        with pytest.raises(InvalidArgument, match="another search"):
            request(**{"cursor": cursor, **other})


@given(st.text(max_size=60))
def test_any_other_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^cursor "):
        request(cursor=cursor)


@given(st.binary(max_size=60))
def test_a_cursor_that_was_tampered_with_is_refused(data: bytes) -> None:
    raw = msgspec.msgpack.encode(Anchor(data, 1, (), 0.0, 0))
    with pytest.raises(InvalidArgument, match=r"^cursor "):
        request(cursor=base64.urlsafe_b64encode(raw).decode())


RANKED = [(5, 3.0), (9, 2.0), (7, 2.0), (1, 0.5)]


@pytest.mark.parametrize(
    ("last", "score", "expected"),
    [
        ((9, 5), 2.0, [7, 1]),
        ((8, 5), 2.5, [9, 7, 1]),
        ((8,), 2.0, [7, 1]),
        ((8,), 9.0, [5, 9, 7, 1]),
        ((1,), 0.5, []),
    ],
)
def test_what_follows_is_found_by_the_last_message_or_the_one_before_or_its_score(
    last: tuple[int, ...], score: float, expected: list[int]
) -> None:
    found = following(RANKED, Anchor(b"", 9, last, score, 2))
    assert [number for number, _ in found] == expected
    assert following(RANKED, None) == RANKED
