"""Giving back what the index holds of rows that are gone, a little at a time.

Ordinary messages go oldest first, so their oldest partition is the one to look at, and is dropped
whole. Memories stay among others that were edited or deleted: their partitions are looked at in
turn, and rewritten where most of one is obsolete, or where two are small enough to be one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentbus.indexer.ports import Index, Remains
from agentbus.model.channel import Kind
from agentbus.search.document import documents
from agentbus.search.fts5.schema import Partition

FEW: Final = 1_024
"""Current memories that two partitions may have to be put together."""

WORTH: Final = 64
"""Documents of a partition that is worth rewriting for itself."""


class Tidy:
    """`step` does one thing at most."""

    def __init__(self, index: Index, remains: Remains) -> None:
        self._index = index
        self._remains = remains
        self._next = 0

    def step(self) -> bool:
        """Whether it did something, so that there may be more to do at once."""
        return self._drop_oldest() or self._rewrite_some()

    def _of(self, kind: Kind) -> list[Partition]:
        return [partition for partition in self._index.partitions if partition.kind == kind]

    def _drop_oldest(self) -> bool:
        for partition in self._of("ordinary")[:1]:
            if not self._remains.has_messages(partition.first_id, partition.last_id):
                self._index.drop(partition)
                return True
        return False

    def _rewrite_some(self) -> bool:
        memories = self._of("memory")
        if not memories:
            return False
        self._next %= len(memories)
        pair = memories[self._next : self._next + 2]
        self._next += 1
        live = [self._live(partition) for partition in pair]
        if len(pair) == 2 and sum(live) <= FEW:
            self._rewrite(pair)
            self._next -= 1
            return True
        if pair[0].documents >= max(WORTH, 2 * live[0]):
            self._rewrite(pair[:1])
            return True
        return False

    def _live(self, partition: Partition) -> int:
        return self._remains.count_memories(partition.first_id, partition.last_id)

    def _rewrite(self, partitions: Sequence[Partition]) -> None:
        rows = self._remains.memory_rows(partitions[0].first_id, partitions[-1].last_id)
        self._index.rewrite(partitions, documents(rows)[0])
