"""What holds of any text and any query, in both indexes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentbus.model.ids import ChannelId, Seq
from agentbus.search import normalise
from agentbus.search.document import EVERY, Document
from agentbus.search.fts5.read import IndexReader, Range
from agentbus.search.fts5.schema import Mark
from agentbus.search.fts5.write import IndexWriter
from agentbus.search.query import parse
from agentbus.search.query_engine import write
from agentbus.search.query_engine.read import Searching
from agentbus.search.request import build
from agentbus.wire.links import SearchFilter
from tests.integration.conftest import QueryEngine
from tests.support.search_reference import finds, texts

Search = Callable[[list[str], str], list[int]]
"""Indexes texts, and gives the numbers of those that a query finds."""


def documents(contents: list[str]) -> list[Document]:
    made = []
    for number, content in enumerate(contents):
        text = normalise.text(content)
        place = (ChannelId(1), Seq(number + 1))
        sent_at = "2026-11-30T16:40:27.123Z"
        words = (text.words, text.parts, EVERY)
        made.append(Document(number + 1, place, "ordinary", sent_at, *words))
    return made


def request(query: str):
    return build(query, SearchFilter(), "newest", 1000, None, 10**9, {}, "")


@pytest.fixture(params=["fts5", "query engine"])
def search(
    request: pytest.FixtureRequest, tmp_path: Path, redis_server: Callable[[], QueryEngine]
) -> Search:
    if request.param == "fts5":
        return lambda contents, query: in_file(tmp_path / "i", contents, query)
    server = redis_server()
    server.run(*write.OPTIONS)
    return lambda contents, query: in_redis(server, contents, query)


def in_file(path: Path, contents: list[str], query: str) -> list[int]:
    with closing(IndexWriter(str(path))) as writer, closing(IndexReader(str(path))) as reader:
        writer.open()
        writer.begin(Mark("", "", 0))
        writer.add(documents(contents), 1)
        with reader.searching(lambda: False) as state:
            found = state.candidates(request(query), Range(0, 1000))
            return sorted(number - 1 for number, _ in found)


class Numbers:
    """Envelopes that only tell the place."""

    def ask(self, place, memory_id):
        return (b"ECHO", b'{"content": "%d"}' % place[1])

    def read(self, reply):
        return reply


def in_redis(server: QueryEngine, contents: list[str], query: str) -> list[int]:
    puts = [write.put(document, None) for document in documents(contents)]
    server.run((b"FLUSHALL",), write.CREATE, *puts)
    searching = Searching(request(query), Numbers())
    while not searching.done:
        searching.take(server.run(*searching.commands()))
    return sorted(int(hit.snippet) - 1 for hit in searching.page().hits)


@st.composite
def a_text_and_a_part_of_it(draw: st.DrawFn) -> tuple[list[str], int, str]:
    contents = draw(st.lists(texts.filter(str.strip), min_size=1, max_size=3))
    place = draw(st.integers(0, len(contents) - 1))
    return contents, place, draw(st.sampled_from(contents[place].split()))


bounded = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@bounded
@given(contents=st.lists(texts, min_size=1, max_size=4), query=texts)
def test_a_query_finds_what_it_means_and_never_fails(
    search: Search, contents: list[str], query: str
) -> None:
    expected = [n for n, content in enumerate(contents) if finds(parse(query), content)]
    assert search(contents, query) == expected


@bounded
@given(data=a_text_and_a_part_of_it())
def test_a_text_is_found_by_each_of_its_words_as_they_stand(
    search: Search, data: tuple[list[str], int, str]
) -> None:
    contents, place, word = data
    quoted = '"' + word.replace('"', " ") + '"'
    found = search(contents, quoted)
    assert place in found or normalise.term(word.replace('"', " "), prefix=False) is None


@bounded
@given(
    before=st.text("京都民芸館へ行かなか한국어ไทยが", max_size=5),
    sought=st.text("京都民芸館へ行かなか한국어ไทยが", min_size=2, max_size=5),
    after=st.text("京都民芸館へ行かなか한국어ไทยが", max_size=5),
)
def test_text_without_spaces_is_found_by_any_two_signs_of_it(
    search: Search, before: str, sought: str, after: str
) -> None:
    assert search([before + sought + after, "x"], sought) == [0]


@bounded
@given(text=st.text("ab京", max_size=8), query=st.text('ab京 "-*', max_size=8))
def test_words_that_are_repeated_are_told_apart(search: Search, text: str, query: str) -> None:
    contents = [" ".join(text), text]
    expected = [n for n, content in enumerate(contents) if finds(parse(query), content)]
    assert search(contents, query) == expected
