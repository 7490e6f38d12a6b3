"""What is held for all peers together: lines that have not ended, and what they leave unread.

Each connection has bounds of its own, but a peer can have many. Whoever holds most is cut off where
all of it is too much; the others never notice.
"""

from __future__ import annotations

from typing import Protocol


class Holder(Protocol):
    """A connection."""

    def cut_off(self) -> None:
        """Ends it."""
        ...


class Holdings:
    """Bytes by connection, at most `bound` in all."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._sizes: dict[Holder, int] = {}
        self.total = 0

    def hold(self, holder: Holder, size: int) -> None:
        """It holds so much from now on; 0 forgets it."""
        self.total += size - self._sizes.pop(holder, 0)
        if size:
            self._sizes[holder] = size
        while self.total > self._bound:
            most = max(self._sizes, key=self._sizes.__getitem__)
            self.total -= self._sizes.pop(most)
            most.cut_off()
