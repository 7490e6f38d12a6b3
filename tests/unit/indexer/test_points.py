"""An index with its points."""

from __future__ import annotations

from typing import Any, cast

from agentbus.indexer import points
from agentbus.indexer.ports import Index
from agentbus.runtime.faults import Point, no_fault


class Noted:
    """An index that notes what is added."""

    documents = 7

    def __init__(self, seen: list[Any]) -> None:
        self._seen = seen

    def add(self, documents: Any, commit_id: int) -> None:
        self._seen.append(commit_id)


def test_adding_is_between_two_points() -> None:
    seen: list[Any] = []
    index = points.watched(cast("Index", Noted(seen)), seen.append)
    index.add([], 3)
    assert seen == [Point.INDEXING, 3, Point.INDEXED]
    assert index.documents == 7


def test_in_earnest_an_index_is_the_index() -> None:
    index = cast("Index", Noted([]))
    assert points.watched(index, no_fault) is index
