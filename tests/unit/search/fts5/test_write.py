"""The index file, on a real disk."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentbus.errors import StorageFailed
from agentbus.model.ids import ChannelId, Seq
from agentbus.search import normalise
from agentbus.search.document import EVERY, Document
from agentbus.search.fts5 import read, write
from agentbus.search.fts5.read import IndexReader, Range, Stopped
from agentbus.search.fts5.schema import IndexDamaged, Mark
from agentbus.search.fts5.write import IndexWriter
from agentbus.search.request import build
from agentbus.wire.links import SearchFilter

MARK = Mark("bus", "1", 0)


def documents(*numbers: int, kind: Any = "ordinary", text: str = "apple pie") -> list[Document]:
    found = normalise.text(text)
    return [
        Document(n, (ChannelId(1), Seq(n)), kind, "", found.words, found.parts, f"{EVERY} k{kind}")
        for n in numbers
    ]


def ids(path: Path, query: str = "apple", *, stop: bool = False, **more: Any) -> list[int]:
    within = more.pop("within", Range(0, 10**6))
    order = more.pop("order", "newest")
    request = build(query, SearchFilter(**more), order, 1000, None, 10**6, {}, "")
    with closing(IndexReader(str(path))) as reader, reader.searching(lambda: stop) as search:
        return [number for number, _ in search.candidates(request, within)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "search.sqlite3"


@pytest.fixture
def index(path: Path) -> Iterator[IndexWriter]:
    with closing(IndexWriter(str(path))) as made:
        made.open()
        made.begin(MARK)
        yield made


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions of four documents."""
    monkeypatch.setattr(write, "FULL", {"ordinary": (4, 10**6), "memory": (4, 10**6)})


def shapes(index: IndexWriter) -> list[tuple[str, int, int, int]]:
    return [(p.kind, p.first_id, p.last_id, p.documents) for p in index.partitions]


def test_a_new_index_is_empty_and_says_nothing_of_itself(path: Path) -> None:
    with closing(IndexWriter(str(path))) as index:
        assert index.open() is None
        assert (index.documents, index.text_bytes, list(index.partitions)) == (0, 0, [])
    assert path.stat().st_mode & 0o777 == 0o600


def test_documents_and_the_commit_they_come_with_are_kept(index: IndexWriter, path: Path) -> None:
    index.add(documents(1, 2, 5), 7)
    assert index.open() == Mark("bus", "1", 7)
    assert index.documents == 3
    assert index.text_bytes == 3 * len("apple pie")
    assert ids(path) == [5, 2, 1]


def test_partitions_are_of_one_kind_and_end_when_they_are_full(
    small: None, index: IndexWriter, path: Path
) -> None:
    index.add(documents(1, 2) + documents(3, kind="memory") + documents(4, 5, 6), 1)
    index.add(documents(7) + documents(8, 9, kind="memory"), 2)
    expected = [("ordinary", 1, 5, 4), ("ordinary", 6, 7, 2), ("memory", 3, 9, 3)]
    assert shapes(index) == expected
    index.open()
    assert shapes(index) == expected
    assert ids(path) == [9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert ids(path, kind="memory") == [9, 8, 3]
    assert ids(path, within=Range(3, 6)) == [6, 5, 4, 3]
    assert sorted(ids(path, order="relevance")) == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_bytes_end_a_partition_as_well(index: IndexWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "FULL", {"ordinary": (100, 18), "memory": (100, 100)})
    for number in range(1, 5):
        index.add(documents(number), number)
    assert shapes(index) == [("ordinary", 1, 2, 2), ("ordinary", 3, 4, 2)]


def test_a_partition_is_dropped_whole(small: None, index: IndexWriter, path: Path) -> None:
    index.add(documents(*range(1, 11)), 1)
    index.drop(index.partitions[0])
    assert ids(path) == [10, 9, 8, 7, 6, 5]
    assert index.documents == 6
    index.add(documents(11), 2)
    assert ids(path)[0] == 11


def test_neighbours_are_put_together(small: None, index: IndexWriter, path: Path) -> None:
    index.add(documents(*range(1, 11), kind="memory"), 1)
    index.rewrite(index.partitions[:2], documents(2, 7, kind="memory"))
    assert shapes(index) == [("memory", 1, 8, 2), ("memory", 9, 10, 2)]
    assert ids(path) == [10, 9, 7, 2]
    index.rewrite(index.partitions[:1], [])
    assert shapes(index) == [("memory", 9, 10, 2)]


def test_beginning_again_forgets_everything(index: IndexWriter, path: Path) -> None:
    index.add(documents(1, 2), 3)
    index.begin(Mark("other", "1", 0))
    assert index.open() == Mark("other", "1", 0)
    assert ids(path) == []


def test_what_fails_changes_nothing(small: None, index: IndexWriter, path: Path) -> None:
    index.add(documents(1, 2), 1)
    broken = documents(3, 4, 5)
    broken[-1] = Document(5, broken[-1].place, "ordinary", "", object(), "", "")  # type: ignore[arg-type]
    with pytest.raises(IndexDamaged):
        index.add(broken, 2)
    assert shapes(index) == [("ordinary", 1, 2, 2)]
    assert ids(path) == [2, 1]
    index.add(documents(3), 2)
    assert index.open() == Mark("bus", "1", 2)


def test_a_lock_of_another_program_is_told_at_once(index: IndexWriter, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageFailed):
            index.add(documents(1), 1)
    index.add(documents(1), 1)


@pytest.mark.parametrize("content", [b"no database at all, but long enough" * 200, b"SQLite"])
def test_what_is_no_index_is_put_aside(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with closing(IndexWriter(str(path))) as index:
        assert index.open() is None
        index.begin(MARK)
    assert Path(f"{path}.damaged").read_bytes() == content


def test_another_programs_database_is_put_aside(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE theirs (x)")
    with closing(IndexWriter(str(path))) as index:
        assert index.open() is None
    with closing(sqlite3.connect(f"{path}.damaged")) as other:
        assert other.execute("SELECT count(*) FROM theirs").fetchone() == (0,)


def test_a_table_that_is_missing_is_damage(index: IndexWriter, path: Path) -> None:
    index.add(documents(1), 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("DROP TABLE text_1")
    with pytest.raises(IndexDamaged):
        index.add(documents(2), 2)
    with pytest.raises(IndexDamaged):
        ids(path)


def test_a_search_is_of_one_state(index: IndexWriter, path: Path) -> None:
    index.add(documents(1, 2), 1)
    request = build("apple", SearchFilter(), "newest", 10, None, 10**6, {}, "")
    with closing(IndexReader(str(path))) as reader:
        with reader.searching(lambda: False) as search:
            candidates = search.candidates(request, Range(0, 100))
            assert next(candidates) == (2, 0.0)
            index.add(documents(3), 2)
            index.drop(index.partitions[0])
            assert list(candidates) == [(1, 0.0)]
            assert (search.newest, search.mark) == (2, Mark("bus", "1", 1))
        with reader.searching(lambda: False) as search:
            assert (search.newest, search.mark.commit_id) == (0, 2)


def test_a_search_is_stopped_when_it_is_told_to(index: IndexWriter, path: Path) -> None:
    index.add(documents(*range(1, 2000)), 1)
    with pytest.raises(Stopped):
        ids(path, "apple", order="relevance", stop=True)


@pytest.mark.parametrize("order", ["newest", "relevance"])
@pytest.mark.parametrize("anew", [False, True], ids=["in use", "opened for it"])
def test_a_reader_is_as_before_wherever_a_search_was_stopped(
    index: IndexWriter, path: Path, monkeypatch: pytest.MonkeyPatch, order: str, anew: bool
) -> None:
    monkeypatch.setattr(read, "STEPS", 1)
    index.add(documents(1, 2, 3), 1)
    index.add(documents(4, kind="memory"), 2)
    request = build("apple", SearchFilter(), order, 10, None, 10**6, {}, "")
    looks = 0

    def find(last: float) -> list[int] | None:
        nonlocal looks
        looks = 0

        def stop() -> bool:
            nonlocal looks
            looks += 1
            return looks >= last

        try:
            with reader.searching(stop) as search:
                return [number for number, _ in search.candidates(request, Range(0, 100))]
        except Stopped:
            return None

    with closing(IndexReader(str(path))) as reader:
        everything = find(math.inf)
        assert everything == [4, 3, 2, 1] or order == "relevance"
        if anew:
            reader.close()
        find(math.inf)
        found = []
        for last in range(1, looks + 1, max(1, looks // 400)):
            if anew:
                reader.close()
            found.append(find(last))
            assert found[-1] in (None, everything), last
            assert find(math.inf) == everything, last
        assert found.count(None) > len(found) / 2
