"""Live projection: commits and evictions that wait to be written."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from agentbus.config import MIB
from agentbus.mirror.write import Changes
from agentbus.model.ids import ChannelId, CommitId, Seq
from agentbus.projector.memories import net
from agentbus.wire.links import Boundary, Committed, Evicted, RowInserted, Tombstoned

MERGED_ROWS: Final = 256
MERGED_BYTES: Final = 4 * MIB


class Merged(msgspec.Struct, frozen=True):
    """One or several commits; `commit_id` is the last of these."""

    changes: Changes
    commit_id: CommitId


class Eviction(msgspec.Struct, frozen=True):
    """Boundaries; the measure is owed for `asked`, where somebody has asked."""

    boundaries: list[Boundary]
    asked: Evicted | None = None


class Backlog:
    """Commits that the writer told of, in a chain without a missing link, and between them what
    was evicted after the one and before the other."""

    def __init__(self) -> None:
        self._waiting: deque[Committed | Eviction] = deque()
        self._newest = CommitId(0)
        self._heads: dict[ChannelId, Seq] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def start(self, commit_id: CommitId, heads: Mapping[ChannelId, Seq]) -> None:
        """Forgets what waits; the chain goes on after this commit, the streams after `heads`."""
        self._waiting.clear()
        self._newest = commit_id
        self._heads = dict(heads)

    def add(self, committed: Committed) -> bool:
        """False: there is a commit between this one and the chain, which only the database has.

        What the chain has already is passed over.
        """
        if committed.commit_id <= self._newest:
            return True
        if committed.previous != self._newest:
            return False
        self._waiting.append(committed)
        self._newest = committed.commit_id
        return True

    def evict(self, eviction: Eviction) -> None:
        """After the commits so far."""
        self._waiting.append(eviction)

    def merge(self) -> Merged | Eviction | None:
        """Takes an eviction, or as many commits as fit one transaction, at least one; None:
        nothing waits."""
        waiting = self._waiting
        if not waiting:
            return None
        first = waiting.popleft()
        if isinstance(first, Eviction):
            return first
        if not waiting:
            return self._merged(first.rows, first.tombstones, first.commit_id)
        rows, tombstones, commit_id = list(first.rows), list(first.tombstones), first.commit_id
        size = _bytes(rows)
        while waiting:
            following = waiting[0]
            if isinstance(following, Eviction):
                break
            size += _bytes(following.rows)
            if len(rows) + len(following.rows) > MERGED_ROWS or size > MERGED_BYTES:
                break
            rows += following.rows
            tombstones += following.tombstones
            commit_id = following.commit_id
            waiting.popleft()
        return self._merged(rows, tombstones, commit_id)

    def _merged(
        self, rows: list[RowInserted], tombstones: list[Tombstoned], commit_id: CommitId
    ) -> Merged:
        if tombstones:
            tombstones = self._with_entries(rows, tombstones)
        return Merged(net(rows, tombstones, self._is_new), commit_id)

    def _with_entries(
        self, rows: list[RowInserted], tombstones: list[Tombstoned]
    ) -> list[Tombstoned]:
        """Without memories that came and went within one commit."""
        told = {row.memory_id for row in rows}
        heads = self._heads
        return [
            each
            for each in tombstones
            if each.memory_id in told or each.seq <= heads.get(each.channel_id, 0)
        ]

    def _is_new(self, row: RowInserted) -> bool:
        """A memory's position says so: a commit that creates and edits one tells of the edit."""
        if row.seq <= self._heads.get(row.channel_id, 0):
            return False
        self._heads[row.channel_id] = row.seq
        return True


def _bytes(rows: Iterable[RowInserted]) -> int:
    return sum(len(row.envelope) for row in rows)
