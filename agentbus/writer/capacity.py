"""How full both budgets are, and how much of what is to come still fits: pure arithmetic.

SQLite's usage is exact: the logical bytes of rows. The projection's is a model between two
measures: what Redis said its dataset was, grown by the envelopes added since, at the ratio of that
measure; and once more the envelopes, for a text index beside it. (Sizes of files and pages do not
shrink when rows go; to decide by them would evict everything.) Where the server indexes the text
itself, its dataset has the index in it; until a measure has told so, the index counts as beside it.

    limit        ------------------------------------  nothing is admitted beyond it
    target       - - - - - - - - - - - - - - - - - -   where a cleanup that has begun ends
    used         ===================
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from agentbus.config import MIB, Settings
from agentbus.errors import CapacityExhausted

MUCH: Final = 1 / 16
"""The part of the budget by which usage may change before it is measured again: what the first
messages of a bus cost is a guess, and a search index costs several times their size."""

BudgetName = Literal["redis_budget_mib", "sqlite_budget_mib"]

ROW_OVERHEAD: Final = 320
"""Bytes beside its envelope that a message takes at most in common cases: numbers, ids, receipt."""

FIRST_RATIO: Final = 1.5
"""Dataset bytes for one of an envelope, before there is enough to measure it by."""

MEASURABLE: Final = 4 * MIB
"""Envelope bytes from which on a measure says something about their ratio."""


class Stored(msgspec.Struct, frozen=True):
    """What the database holds: `logical` bytes of rows, and of these `live`, the envelopes of rows
    that are not tombstoned."""

    logical: int
    live: int


class Room:
    """What one batch may still add; `why` is told where that is not enough. `projection` is what
    the budget of Redis had been used of before it."""

    def __init__(self, left: int, why: str, projection: int = 0) -> None:
        self._left = left
        self._why = why
        self.projection = projection
        self.refused = False

    def take(self, envelope_bytes: int) -> None:
        """For a row that is about to be inserted. Raises CapacityExhausted."""
        cost = envelope_bytes + ROW_OVERHEAD
        if cost > self._left:
            self.refused = True
            raise CapacityExhausted(self._why)
        self._left -= cost


class Capacity:
    """Bytes throughout."""

    def __init__(self, settings: Settings) -> None:
        self.sqlite_limit = settings.sqlite_budget_mib * MIB
        self.redis_limit = settings.redis_budget_mib * MIB
        self._kept = 1 - settings.cleanup_free_percent / 100
        self._ratio = FIRST_RATIO
        self._beside = 1.0  # bytes of the index that are not Redis', for one of an envelope
        self._base = 0.0

    def measured(self, dataset: int, live: int, *, with_index: bool = False) -> None:
        """Redis has this dataset while it holds so many bytes of envelopes."""
        self._beside = 0.0 if with_index else 1.0
        if live >= MEASURABLE:
            self._ratio = max(1.0, dataset / live)
            self._base = 0.0
        else:
            self._base = max(0.0, dataset - live * self._ratio)

    def projection(self, live: int) -> int:
        """What Redis and the text index take for so many bytes of envelopes."""
        return int(self._base + live * (self._ratio + self._beside))

    def differs(self, asked: int, stored: Stored) -> bool:
        """Whether the projection's usage has changed much since it was so much."""
        return abs(self.projection(stored.live) - asked) > self.redis_limit * MUCH

    def room(self, stored: Stored) -> int:
        """Bytes of envelopes, each with `ROW_OVERHEAD`, that fit both budgets; not below 0."""
        sqlite = self.sqlite_limit - stored.logical
        free = self.redis_limit - self.projection(stored.live)
        redis = free / (self._ratio + self._beside)
        return max(0, int(min(sqlite, redis)))

    def above_target(self, stored: Stored) -> bool:
        """Whether a cleanup that has begun goes on."""
        return (
            stored.logical > self.sqlite_limit * self._kept
            or self.projection(stored.live) > self.redis_limit * self._kept
        )

    def fullest(self, stored: Stored) -> tuple[BudgetName, int, int]:
        """The budget that binds: its setting, what is used of it, its limit."""
        projection = self.projection(stored.live)
        if projection / self.redis_limit >= stored.logical / self.sqlite_limit:
            return "redis_budget_mib", projection, self.redis_limit
        return "sqlite_budget_mib", stored.logical, self.sqlite_limit
