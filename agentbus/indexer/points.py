"""The points of this process at which tests make it die; nothing of it is there in earnest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from agentbus.indexer.ports import Index
from agentbus.runtime.faults import Fault, Point, no_fault
from agentbus.search.document import Document


class _Watched:
    """Stands for an index."""

    def __init__(self, index: Index, fault: Fault) -> None:
        self._index = index
        self._fault = fault

    def add(self, documents: Iterable[Document], commit_id: int) -> None:
        """As that of an index."""
        self._fault(Point.INDEXING)
        self._index.add(documents, commit_id)
        self._fault(Point.INDEXED)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)


def watched(index: Index, fault: Fault) -> Index:
    """The index with its points; in earnest the index itself."""
    return index if fault is no_fault else cast("Index", _Watched(index, fault))
