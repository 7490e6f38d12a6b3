"""Whether the wall clock can be trusted with deleting: pure.

Age rules compare stored times with the present one, so a clock that was set wrong could delete
everything at once. A jump against the monotonic clock suspends them until it has stood for a while
(a laptop that slept looks the same, and an hour is no loss to it).

Cursors do not stop to expire meanwhile, but for that hour the leap is not counted: who resumes a
laptop after days finds its cursors, and whatever the session does within the hour renews them.
"""

from __future__ import annotations

from typing import Final

from agentbus.model.ports import Instant

JUMP_SECONDS: Final = 300.0
SUSPENDED_SECONDS: Final = 3600.0


class Ages:
    """Told every instant at which something is decided."""

    def __init__(self) -> None:
        self._offset: float | None = None
        self._until = 0.0
        self._leapt = 0.0
        self.jump = 0.0

    def observe(self, now: Instant) -> bool:
        """Whether the clock has jumped since the last time; `jump` says by how many seconds."""
        offset = now.wall - now.monotonic
        before, self._offset = self._offset, offset
        if before is None or abs(offset - before) <= JUMP_SECONDS:
            return False
        self.jump = offset - before
        leapt = 0.0 if self.trusted(now) else self._leapt
        self._leapt = max(0.0, leapt + self.jump)
        self._until = now.monotonic + SUSPENDED_SECONDS
        return True

    def trusted(self, now: Instant) -> bool:
        """Whether age rules apply."""
        return now.monotonic >= self._until

    def patient(self, now: Instant) -> int:
        """The wall time in milliseconds by which cursors expire: without recent leaps forward."""
        leapt = 0.0 if self.trusted(now) else self._leapt
        return int((now.wall - leapt) * 1000)
