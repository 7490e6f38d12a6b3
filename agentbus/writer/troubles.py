"""Commits that fail, in the log: said when it begins, now and then, and when it is over.

A disk that stays full fails every send of everybody, and the log is on it, too.
"""

from __future__ import annotations

from typing import Final

from agentbus.errors import AgentbusError
from agentbus.model.ports import Instant
from agentbus.wire.events import Note
from agentbus.writer.events import Effect

AGAIN_SECONDS: Final = 60.0


LOCKED_SECONDS: Final = 20.0
"""How long a lock of another program is waited out. Shorter than the 30 s for which an adapter
waits for an answer: its caller is to hear that nothing was stored, not that nobody knows."""


class Troubles:
    """Counts what is not said."""

    def __init__(self) -> None:
        self._locked_at: float | None = None
        self._text = ""
        self._said_at = 0.0
        self._unsaid = 0

    def failed(self, error: AgentbusError, now: Instant) -> list[Effect]:
        """A batch, or a greeting, was not committed."""
        if error.message == self._text and now.monotonic < self._said_at + AGAIN_SECONDS:
            self._unsaid += 1
            return []
        fields = {"error": type(error).__name__, "text": error.message, "unsaid": self._unsaid}
        self._text, self._said_at, self._unsaid = error.message, now.monotonic, 0
        return [Note("error", "commit_failed", fields)]

    def over(self) -> None:
        """One was: the next failure is a new one."""
        self._text, self._unsaid = "", 0
        self._locked_at = None

    def locked(self, now: Instant) -> bool:
        """Another program writes; whether that has lasted for too long."""
        if self._locked_at is None:
            self._locked_at = now.monotonic
        return now.monotonic >= self._locked_at + LOCKED_SECONDS
