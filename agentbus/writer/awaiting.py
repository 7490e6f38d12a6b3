"""Opening the database as soon as it can be: a lock, or a disk that is full, may be in the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from agentbus.errors import StorageFailed
from agentbus.model.ports import Instant
from agentbus.sqlite import Busy
from agentbus.wire.error_codes import to_failure
from agentbus.wire.events import Note, Send
from agentbus.wire.links import CONTROL, Hindered
from agentbus.writer.troubles import LOCKED_SECONDS

LOCKED_RETRY_SECONDS: Final = 0.02
FAILED_RETRY_SECONDS: Final = 0.25
AGAIN_SECONDS: Final = 60.0
"""Between two lines of the log that say the same."""


T = TypeVar("T")


class Awaiting(Generic[T]):
    """Tries to open; None and `retry_seconds` until it works. Raises what no patience mends."""

    def __init__(self, opening: Callable[[Instant], T]) -> None:
        self._open = opening
        self._since: float | None = None
        self._logged: tuple[str, float] | None = None
        self._told = ""
        self.retry_seconds = 0.0
        self.effects: list[Any] = []
        """What there is to say; whoever says it clears it."""

    def attempt(self, now: Instant) -> T | None:
        """One attempt."""
        try:
            opened = self._open(now)
        except StorageFailed as error:
            self._failed(error, now.monotonic)
            return None
        if self._since is not None:
            seconds = round(now.monotonic - self._since, 1)
            self.effects.append(Note("info", "database_free", {"seconds": seconds}))
        return opened

    def _failed(self, error: StorageFailed, now: float) -> None:
        locked = isinstance(error, Busy)
        self.retry_seconds = LOCKED_RETRY_SECONDS if locked else FAILED_RETRY_SECONDS
        self._since = now if self._since is None else self._since
        self._log("database_locked" if locked else "database_unavailable", error, now)
        patience = LOCKED_SECONDS if locked else 0.0
        if now >= self._since + patience and error.message != self._told:
            self._told = error.message
            self.effects.append(Send(CONTROL, Hindered(to_failure(error))))

    def _log(self, action: str, error: StorageFailed, now: float) -> None:
        if self._logged is not None:
            text, at = self._logged
            if text == error.message and now < at + AGAIN_SECONDS:
                return
        self._logged = (error.message, now)
        seconds = round(now - (self._since or now))
        fields = {"code": error.code, "text": error.message, "seconds": seconds}
        self.effects.append(Note("warn", action, fields))
