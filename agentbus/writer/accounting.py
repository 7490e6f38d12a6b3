"""Verifies the bytes that are counted along, once after start, a chunk at a time.

The rows up to a bound are added up in the order of their ids while the writer goes on: what is
deleted below the place reached is taken off again, and what is above the bound is too new to be
in doubt, so it is added up at the end, in one transaction with the comparison.
"""

from __future__ import annotations

from typing import Final

from agentbus.store.write import WriteStore
from agentbus.wire.events import Note

CHUNK_ROWS: Final = 2000


class _Sum:
    """Of one table."""

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.place = 0
        self.logical = 0
        self.live = 0
        self.done = False

    def removed(self, row: int, logical: int, live: int) -> None:
        if row <= self.place:
            self.logical -= logical
            self.live -= live


class Accounting:
    """Has to be told of every row that goes while it is not `done`."""

    def __init__(self, store: WriteStore, bound: int) -> None:
        self._store = store
        self._messages = _Sum(bound)
        self._receipts = _Sum(bound)
        self.done = False

    def message_gone(self, row: int, logical: int, live: int) -> None:
        """A message row was deleted; `live` is 0 for a tombstone."""
        self._messages.removed(row, logical, live)

    def message_tombstoned(self, row: int, live: int) -> None:
        """A revision is not live any more."""
        self._messages.removed(row, 0, live)

    def receipt_gone(self, row: int, logical: int) -> None:
        """A receipt was deleted."""
        self._receipts.removed(row, logical, 0)

    def step(self) -> list[Note]:
        """The next chunk; call it within a transaction. At the end, what was wrong if anything."""
        evictions = self._store.evictions
        for total, sizes in (
            (self._messages, evictions.message_sizes),
            (self._receipts, evictions.receipt_sizes),
        ):
            if not total.done:
                found = sizes(total.place, total.bound, CHUNK_ROWS)
                total.logical += found.logical
                total.live += found.live
                total.done = found.rows < CHUNK_ROWS
                total.place = total.bound if total.done else found.last
                return []
        return self._compare()

    def _compare(self) -> list[Note]:
        evictions = self._store.evictions
        newer = 2**62
        messages = evictions.message_sizes(self._messages.bound, newer, newer)
        receipts = evictions.receipt_sizes(self._receipts.bound, newer, newer)
        logical = self._messages.logical + self._receipts.logical
        logical += messages.logical + receipts.logical
        live = self._messages.live + messages.live
        counted_logical, counted_live = evictions.stored()
        self.done = True
        wrong = (logical - counted_logical, live - counted_live)
        if wrong == (0, 0):
            return []
        evictions.correct(*wrong)
        return [Note("warn", "accounting_corrected", {"logical": wrong[0], "live": wrong[1]})]
