"""The one line by which a daemon tells whoever started it how that went."""

from __future__ import annotations

import contextlib
import os

import msgspec

from agentbus.wire.error_codes import ErrorData


class Report:
    """Writes at most one line, then closes the pipe; without a pipe it does nothing."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd
        if fd is not None:
            os.set_inheritable(fd, False)

    @property
    def awaited(self) -> bool:
        """Whether somebody waits at the other end."""
        return self._fd is not None

    def ready(self, pid: int) -> None:
        """The daemon with this pid serves."""
        self._write({"ready": True, "pid": pid})

    def failure(self, data: ErrorData) -> None:
        """It does not, and why."""
        self._write({"error": data})

    def close(self) -> None:
        """Gives the pipe up; without a line its reader knows that the daemon died."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def _write(self, line: dict[str, object]) -> None:
        if self._fd is not None:
            with contextlib.suppress(OSError):  # nobody waits any more
                os.write(self._fd, msgspec.json.encode(line) + b"\n")
            self.close()
