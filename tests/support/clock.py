"""A daemon's clocks, as a test sets them."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec


class ClockFile:
    """The file that `AGENTBUS_TEST` names as `clock_file`."""

    def __init__(self, directory: str) -> None:
        self.path = os.path.join(directory, "clock.json")

    def shift(self, *, wall: float = 0.0, monotonic: float = 0.0) -> None:
        """Seconds that are added to the machine's clocks from now on."""
        new = Path(self.path + ".new")
        new.write_bytes(msgspec.json.encode({"wall": wall, "monotonic": monotonic}))
        new.rename(self.path)
