"""Replies of the engine that a sound one seldom gives."""

from __future__ import annotations

from typing import Any

import pytest

from agentbus.errors import Unavailable
from agentbus.mirror.read import Envelopes
from agentbus.mirror.resp import Refused
from agentbus.model.ids import CommitId
from agentbus.search.query_engine import field, key, place
from agentbus.search.query_engine.conversation import Conversation
from agentbus.search.query_engine.write import is_complete
from agentbus.wire.links import SearchAsk, SearchFilter, SearchFound, SearchRefused


def conversation(query: str = "x", order: str = "newest", **more: Any) -> Conversation:
    limit = more.pop("limit", 10)
    ask = SearchAsk(4, query, SearchFilter(**more), order, limit, None, CommitId(0), 10**6)
    return Conversation(ask, {}, "i", Envelopes())


def hit(seq: int, number: int) -> list[Any]:
    return [b"d:1:%d" % seq, [b"n", b"%d" % number]]


def entry(seq: int) -> list[Any]:
    return [[b"%d-0" % seq, [b"e", b'{"content":"c%d"}' % seq, b"s", b"1"]]]


def test_candidates_are_asked_for_and_then_their_envelopes() -> None:
    asked = conversation(limit=2)
    (search,) = asked.commands()
    assert search[:3] == (b"FT.SEARCH", b"ab:docs", b"@t|p:(x) @n:[-inf 9007199254740991]")
    asked.take([[3, *hit(5, 50), *hit(4, 40), *hit(3, 30)]])
    assert not asked.done
    reads = asked.commands()
    assert [read[:3] for read in reads] == [(b"XRANGE", b"s:1", b"%d-0" % seq) for seq in (5, 4, 3)]
    asked.take([entry(5), [], entry(3)])
    assert asked.done
    answer = asked.answer
    assert isinstance(answer, SearchFound)
    assert (answer.ref, [found.snippet for found in answer.hits]) == (4, ["c5", "c3"])
    assert answer.next_cursor is None


def test_a_memory_is_read_where_its_content_is() -> None:
    asked = conversation()
    asked.commands()
    asked.take([[1, b"d:2:7", [b"n", b"9", b"m", b"mem"]]])
    assert asked.commands() == [(b"HGET", b"m:2", b"mem")]
    asked.take([None])
    assert asked.done
    assert isinstance(asked.answer, SearchFound)
    assert asked.answer.hits == []


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Refused("Timeout limit was reached"), "invalid_argument"),
        (Refused("ab:docs: no such index"), "unavailable"),
        (None, "unavailable"),
    ],
)
@pytest.mark.parametrize("order", ["newest", "relevance"])
def test_a_refusal_of_the_engine_is_an_answer(reply: Any, code: str, order: str) -> None:
    asked = conversation(order=order)
    commands = asked.commands()
    asked.take([reply] * len(commands))
    assert asked.done
    assert isinstance(asked.answer, SearchRefused)
    assert asked.answer.failure.code == code


def test_a_wrong_argument_is_an_answer_too() -> None:
    asked = conversation(since="soon")
    assert asked.done
    assert asked.commands() == []
    asked.take([])
    assert isinstance(asked.answer, SearchRefused)
    assert asked.answer.failure.code == "invalid_argument"


def test_what_finds_nothing_asks_nothing() -> None:
    asked = conversation("(")
    assert asked.done
    assert asked.answer == SearchFound(4, [], None)


def test_a_search_that_was_given_up_has_an_answer() -> None:
    asked = conversation()
    assert isinstance(asked.answer, SearchRefused)
    asked = conversation()
    asked.failed(Unavailable("Redis is gone"))
    assert asked.done
    assert isinstance(asked.answer, SearchRefused)
    assert asked.answer.failure.message == "Redis is gone"


def unsure(first: int, text: bytes) -> list[Any]:
    """A full batch of candidates for a search of `"a a"`, which have this text."""
    reply: list[Any] = [10**5]
    for number in range(first, first - 128, -1):
        reply += [b"d:1:%d" % number, [b"n", b"%d" % number, b"t", text, b"p", b""]]
    return reply


def test_results_are_checked_where_the_engine_cannot_be_trusted() -> None:
    asked = conversation('"a a"')
    (search,) = asked.commands()
    assert b"(@t:(a a)|@p:(a a))" in search[2]
    assert search[3:9] == (b"RETURN", b"4", b"n", b"m", b"t", b"p")
    reply = unsure(10**6, b"a b a")[:9]
    reply[4][3] = b"a a"
    asked.take([reply])
    assert len(asked.commands()) == 1


def test_a_check_that_hardly_anything_passes_is_given_up() -> None:
    asked = conversation('"a a"')
    last = 10**6
    while not asked.done:
        asked.commands()
        asked.take([unsure(last, b"a b")])
        last -= 128
    assert isinstance(asked.answer, SearchRefused)
    assert asked.answer.failure.code == "invalid_argument"


def test_what_was_found_before_giving_up_can_be_continued() -> None:
    asked = conversation('"a a"')
    asked.commands()
    reply = unsure(10**6, b"a b")
    reply[2][3] = b"a a"
    asked.take([reply])
    asked.commands()
    asked.take([entry(5)])
    last = 10**6
    while not asked.done:
        asked.commands()
        last -= 128
        asked.take([unsure(last, b"a b")])
    assert isinstance(asked.answer, SearchFound)
    assert len(asked.answer.hits) == 1
    assert asked.answer.next_cursor


def test_keys_tell_the_place() -> None:
    assert place(key((3, 14))) == (3, 14)  # type: ignore[arg-type]


def test_characters_beyond_16_bits_become_two() -> None:
    assert field("a京🎉") == "a京\ue03c\ue789"
    assert len({field(chr(code)) for code in range(0x1F300, 0x1F600)}) == 0x300


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ([b"index_name", b"ab:docs", b"indexing", b"0"], True),
        ([b"indexing", b"1"], False),
        (Refused("Unknown index name"), False),
        ([], False),
    ],
)
def test_an_index_is_complete_when_it_says_so(reply: Any, expected: bool) -> None:
    assert is_complete(reply) is expected
