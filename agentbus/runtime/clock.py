"""The only place where a clock is read."""

from __future__ import annotations

import time

from agentbus.model.ports import Instant


class SystemClock:
    """The machine's clocks."""

    def now(self) -> Instant:
        """Both clocks, read now."""
        return Instant(time.monotonic(), time.time())  # noqa: TID251
