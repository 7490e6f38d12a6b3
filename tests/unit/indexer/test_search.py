"""One search over a real index and a real database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentbus.indexer.search import FIRST_BATCH, Searcher
from agentbus.model.ids import CommitId
from agentbus.search.document import documents
from agentbus.search.fts5 import read
from agentbus.search.fts5.schema import Mark
from agentbus.search.fts5.write import IndexWriter
from agentbus.store.lookup import Lookup
from agentbus.store.read import Reader
from agentbus.wire.links import SearchAsk, SearchFilter, SearchFound, SearchRefused
from tests.support.writer_world import World


@pytest.fixture
def index_path(tmp_path: Path) -> Path:
    """An index of 400 messages."""
    path = tmp_path / "search.sqlite3"
    with World(tmp_path) as world, closing(Reader(world.path)) as reader:
        attachment = world.register().attachment
        for start in range(0, 400, 100):
            numbers = range(start, start + 100)
            world.ask(*(world.append(attachment, f"m{n}", f"apple {n}") for n in numbers))
        chunk = reader.rows_after(CommitId(0), 1000, 10**7)
        assert chunk is not None
        with closing(IndexWriter(str(path))) as index:
            index.open()
            index.begin(Mark("bus", "1", 0))
            index.add(documents(chunk.rows)[0], chunk.commit_id)
    return path


@pytest.fixture
def searcher(index_path: Path, tmp_path: Path) -> Iterator[Searcher]:
    with closing(Searcher(str(index_path), str(tmp_path / "bus.sqlite3"))) as made:
        yield made


def ask(query: str, **more: Any) -> SearchAsk:
    limit = more.pop("limit", 10)
    order = more.pop("order", "newest")
    return SearchAsk(5, query, SearchFilter(**more), order, limit, None, CommitId(0), 10**7)


def never() -> bool:
    return False


def after(looks: int) -> Callable[[], bool]:
    """Says stop after having been asked that often."""
    left = [looks]

    def stop() -> bool:
        left[0] -= 1
        return left[0] < 0

    return stop


def test_a_search_is_answered_by_its_ref(searcher: Searcher) -> None:
    searched = searcher.run(1, ask("apple"), never)
    assert searched.damaged is None
    assert isinstance(searched.answer, SearchFound)
    assert searched.answer.ref == 5
    assert [hit.snippet for hit in searched.answer.hits][:2] == ["apple 399", "apple 398"]


@pytest.mark.parametrize("limit", [1, 16, 20, 100, 200, 390])
def test_a_page_reads_hardly_more_messages_than_it_shows(
    limit: int, searcher: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[int] = []
    current = Lookup.current

    def counted(lookup: Lookup, ids: Sequence[int]) -> dict[int, bytes]:
        looked_up.extend(ids)
        return current(lookup, ids)

    monkeypatch.setattr(Lookup, "current", counted)
    answer = searcher.run(1, ask("apple", limit=limit), never).answer
    assert isinstance(answer, SearchFound)
    assert len(answer.hits) == limit
    assert answer.next_cursor
    assert len(looked_up) <= limit + FIRST_BATCH


def test_what_is_refused_is_an_answer(searcher: Searcher) -> None:
    answer = searcher.run(1, ask("apple", since="soon"), never).answer
    assert isinstance(answer, SearchRefused)
    assert (answer.ref, answer.failure.code) == (5, "invalid_argument")


def test_a_search_that_takes_too_long_says_how_to_narrow_it(searcher: Searcher) -> None:
    answer = searcher.run(1, ask("apple", order="relevance"), after(0)).answer
    assert isinstance(answer, SearchRefused)
    assert answer.failure.code == "invalid_argument"
    assert "channels" in answer.failure.message


def test_a_stopped_search_gives_what_it_found_and_can_be_continued(
    searcher: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "STEPS", 50)
    for looks in range(1, 200):
        answer = searcher.run(1, ask("apple", limit=1000), after(looks)).answer
        if isinstance(answer, SearchFound):
            break
    assert isinstance(answer, SearchFound)
    assert 0 < len(answer.hits) < 400
    assert answer.next_cursor
    assert answer.hits[0].snippet == "apple 399"


def test_a_damaged_index_is_told_and_another_file_is_used(
    searcher: Searcher, index_path: Path
) -> None:
    searcher.run(1, ask("apple"), never)
    with closing(sqlite3.connect(index_path, isolation_level=None)) as other:
        other.execute("DROP TABLE text_1")
    searched = searcher.run(1, ask("apple"), never)
    assert searched.damaged
    assert isinstance(searched.answer, SearchRefused)
    assert searched.answer.failure.code == "recovering"
    with closing(IndexWriter(str(index_path))) as index:
        index.put_aside()
        index.open()
        index.begin(Mark("bus", "1", 0))
        assert searcher.run(1, ask("apple"), never).answer == SearchFound(5, [], None)


def test_an_index_that_is_not_there_can_be_tried_again(tmp_path: Path) -> None:
    with closing(Searcher(str(tmp_path / "none"), str(tmp_path / "bus.sqlite3"))) as searcher:
        answer = searcher.run(1, ask("apple"), never).answer
    assert isinstance(answer, SearchRefused)
    assert answer.failure.code == "storage_error"


def test_a_fault_of_ours_ends_one_search_alone(
    searcher: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "expression", lambda _: "NOT a (valid expression")
    searched = searcher.run(1, ask("apple"), never)
    assert (searched.damaged, searched.fault) == (None, "OperationalError")
    assert isinstance(searched.answer, SearchRefused)
    assert searched.answer.failure.code == "internal"
    monkeypatch.undo()
    assert isinstance(searcher.run(1, ask("apple"), never).answer, SearchFound)
