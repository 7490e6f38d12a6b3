"""The one line by which a daemon tells whoever started it how that went.

It goes to a pipe, and to the file whose lock the starter took (`client.attempts`), for all who wait
for the same start; closing that gives the lock up.
"""

from __future__ import annotations

import contextlib
import os

import msgspec

from agentbus.wire.error_codes import ErrorData


class Report:
    """Writes at most one line to each descriptor, then closes it; without any it does nothing."""

    def __init__(self, *fds: int) -> None:
        self._fds = fds
        for fd in fds:
            os.set_inheritable(fd, False)

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for it still."""
        return bool(self._fds)

    def ready(self, pid: int) -> None:
        """The daemon with this pid serves."""
        self._write({"ready": True, "pid": pid})

    def failure(self, data: ErrorData) -> None:
        """It does not, and why."""
        self._write({"error": data})

    def close(self) -> None:
        """Gives them up; without a line their readers know that the daemon died."""
        fds, self._fds = self._fds, ()
        for fd in fds:
            os.close(fd)

    def _write(self, document: dict[str, object]) -> None:
        line = msgspec.json.encode(document) + b"\n"
        for fd in self._fds:
            with contextlib.suppress(OSError):  # nobody waits any more, or the disk is full
                os.write(fd, line)
        self.close()
