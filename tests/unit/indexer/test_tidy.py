from __future__ import annotations

import pytest

from agentbus.indexer.tidy import Tidy
from agentbus.search.fts5.schema import Partition
from tests.unit.indexer.conftest import FakeIndex, FakeSource


class Shelf:
    """An index with partitions, and a bus with what is left of their rows."""

    def __init__(self) -> None:
        self.source, self.index = FakeSource(), FakeIndex()
        self.tidy = Tidy(self.index, self.source)

    def partition(self, kind: str, first: int, last: int, live: int = 0) -> None:
        number = len(self.index.partitions) + 1
        documents = last - first + 1
        self.index.partitions.append(Partition(number, kind, first, last, documents, 0))
        if kind == "memory":
            self.source.memories |= {n: n < first + live for n in range(first, last + 1)}

    def steps(self) -> list:
        while self.tidy.step():
            pass
        return self.index.log


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def test_nothing_is_done_where_nothing_is(shelf: Shelf) -> None:
    assert shelf.steps() == []


def test_ordinary_partitions_go_when_nothing_of_them_is_left(shelf: Shelf) -> None:
    for first in (1, 11, 21):
        shelf.partition("ordinary", first, first + 9)
    shelf.source.purge_floor = 20
    assert shelf.steps() == [("drop", 1), ("drop", 2)]
    shelf.source.purge_floor = 30
    assert shelf.steps()[2:] == [("drop", 3)]


def test_a_partition_of_memories_is_rewritten_when_most_are_obsolete(shelf: Shelf) -> None:
    shelf.partition("memory", 1, 2000, live=900)
    shelf.partition("memory", 2001, 4000, live=1500)
    assert [entry[:2] for entry in shelf.steps()] == [("rewrite", [1])]
    readable = [number for number in range(1, 901) if number != 13]
    assert shelf.index.log[0][2] == readable


def test_small_neighbours_become_one(shelf: Shelf) -> None:
    shelf.partition("memory", 1, 100, live=3)
    shelf.partition("memory", 101, 200, live=2)
    assert shelf.steps() == [("rewrite", [1, 2], [1, 2, 3, 101, 102])]


def test_a_few_obsolete_ones_are_not_worth_it(shelf: Shelf) -> None:
    shelf.partition("memory", 1, 60, live=1)
    assert shelf.steps() == []
