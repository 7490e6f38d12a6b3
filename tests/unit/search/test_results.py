from __future__ import annotations

from agentbus.search.request import build
from agentbus.search.results import Candidate, PageBuilder
from agentbus.wire.links import SearchFilter


def builder(limit: int = 3, max_bytes: int = 1000) -> PageBuilder:
    request = build("x", SearchFilter(), "newest", limit, None, max_bytes, {}, "")
    return PageBuilder(request, 99)


def candidates(*numbers: int, size: int = 20) -> list[Candidate]:
    return [Candidate(n, 0.0, b'{"content":"%s"}' % (b"x" * (size - 14))) for n in numbers]


def test_a_page_is_full_only_when_something_follows() -> None:
    page = builder()
    assert page.is_empty
    assert page.take(candidates(9, 8, 7))
    assert page.page().next_cursor is None
    assert not page.take(candidates(6))
    found = page.page()
    assert len(found.hits) == 3
    assert found.next_cursor


def test_bytes_bound_a_page_but_one_always_comes() -> None:
    page = builder(max_bytes=50)
    assert not page.take(candidates(9, 8, 7))
    assert len(page.page().hits) == 2
    page = builder(max_bytes=1)
    assert page.take(candidates(9))
    assert not page.take(candidates(8))
    assert len(page.page().hits) == 1


def test_an_interrupted_page_can_be_continued() -> None:
    page = builder()
    page.interrupted()
    assert page.page().next_cursor is None
    page.take(candidates(9))
    assert page.page().next_cursor
