"""Keeping the WAL short: when nothing happens, and when readers have held it back."""

from __future__ import annotations

from typing import Final, Literal

from agentbus.errors import AgentbusError
from agentbus.model.ports import Instant
from agentbus.sqlite import WAL_RESTART_BYTES
from agentbus.store.write import WriteStore
from agentbus.wire.events import Note
from agentbus.writer.events import Effect

IDLE_SECONDS: Final = 1.0
"""Without a commit for so long, the WAL is moved into the database."""

RETRY_SECONDS: Final = 0.1
"""Between looks at the WAL, and between attempts while readers hold it back."""

WAL_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Only a reader that never ends, so none of ours, makes the WAL file larger."""


class Tidy:
    """Looks at the WAL ten times a second while something is committed, or it is too large."""

    def __init__(self, store: WriteStore) -> None:
        self._store = store
        self._look_at = 0.0
        self._look_by = 0.0
        self._to_look = False
        self._complained = False
        self._idle_at: float | None = None

    @property
    def at(self) -> float | None:
        """The monotonic time of the next thing to do, None for nothing."""
        return self._look_by if self._to_look else self._idle_at

    def changed(self, now: Instant) -> None:
        """Something was committed."""
        if not self._to_look:
            self._to_look = True
            self._look_by = max(self._look_at, now.monotonic + RETRY_SECONDS)
        self._idle_at = now.monotonic + IDLE_SECONDS

    def due(self, now: Instant, *, idle: bool) -> list[Effect]:
        """Does what is to be done by now."""
        if self._idle_at is None:
            return []
        if self._to_look and now.monotonic >= self._look_at:
            self._look_at = self._look_by = now.monotonic + RETRY_SECONDS
            self._to_look = self._store.wal_bytes() > WAL_RESTART_BYTES
            if self._to_look:
                return self._attempt("truncate") + self._complaint()
        if idle and now.monotonic >= self._idle_at:
            self._idle_at = None
            return self._attempt("passive")
        return []

    def last(self) -> list[Effect]:
        """Before an orderly end: the database file is to hold everything."""
        return self._attempt("truncate")

    def _attempt(self, mode: Literal["passive", "truncate"]) -> list[Effect]:
        try:
            self._store.checkpoint(mode)
        except AgentbusError as error:
            return [Note("warn", "checkpoint_failed", {"code": error.code, "text": error.message})]
        return []

    def _complaint(self) -> list[Effect]:
        size = self._store.wal_bytes()
        too_large, complained = size > WAL_LIMIT_BYTES, self._complained
        self._complained = too_large
        return [Note("warn", "wal_held_back", {"bytes": size})] if too_large > complained else []
