"""Opening a database that cannot be opened yet."""

from __future__ import annotations

from typing import Any

import pytest

from agentbus.errors import AgentbusError, DatabaseDamaged, StorageFailed
from agentbus.model.ports import Instant
from agentbus.sqlite import Busy
from agentbus.wire.events import Note, Send
from agentbus.wire.links import CONTROL, Hindered
from agentbus.writer import awaiting
from agentbus.writer.awaiting import Awaiting
from agentbus.writer.troubles import LOCKED_SECONDS

STORE: Any = object()


class Opening:
    """Fails as it is told."""

    def __init__(self) -> None:
        self.error: AgentbusError | None = None
        self.awaiting = Awaiting(self._open)

    def _open(self, _now: Instant) -> Any:
        if self.error is not None:
            raise self.error
        return STORE

    def attempt(self, seconds: float, error: AgentbusError | None = None) -> tuple[Any, list[str]]:
        """What comes of it: the store, and what is said."""
        self.error = error
        store = self.awaiting.attempt(Instant(seconds, seconds))
        effects, self.awaiting.effects = self.awaiting.effects, []
        return store, [_said(effect) for effect in effects]


def _said(effect: Any) -> str:
    if isinstance(effect, Note):
        return effect.action
    assert isinstance(effect, Send)
    assert effect.link == CONTROL
    assert isinstance(effect.message, Hindered)
    return f"hindered: {effect.message.failure.code}"


def test_what_opens_is_given_without_a_word() -> None:
    assert Opening().attempt(1.0) == (STORE, [])


def test_a_disk_that_is_full_is_told_at_once_and_once() -> None:
    opening = Opening()
    full = StorageFailed("full")
    assert opening.attempt(1.0, full) == (None, ["database_unavailable", "hindered: storage_error"])
    assert opening.awaiting.retry_seconds == awaiting.FAILED_RETRY_SECONDS
    assert opening.attempt(2.0, StorageFailed("full")) == (None, [])
    assert opening.attempt(2.5, StorageFailed("read-only")) == (
        None,
        ["database_unavailable", "hindered: storage_error"],
    )
    later = 2.5 + awaiting.AGAIN_SECONDS
    assert opening.attempt(later, StorageFailed("read-only")) == (None, ["database_unavailable"])
    assert opening.attempt(later + 1) == (STORE, ["database_free"])


def test_a_lock_is_waited_out_for_a_while_before_anybody_is_told() -> None:
    opening = Opening()
    assert opening.attempt(1.0, Busy("locked")) == (None, ["database_locked"])
    assert opening.awaiting.retry_seconds == awaiting.LOCKED_RETRY_SECONDS
    assert opening.attempt(5.0, Busy("locked")) == (None, [])
    patient = 1.0 + LOCKED_SECONDS
    assert opening.attempt(patient, Busy("locked")) == (None, ["hindered: storage_error"])
    assert opening.attempt(patient + 1, Busy("locked")) == (None, [])
    assert opening.attempt(patient + 2) == (STORE, ["database_free"])


def test_what_no_patience_mends_is_not_waited_for() -> None:
    with pytest.raises(DatabaseDamaged):
        Opening().attempt(1.0, DatabaseDamaged("bad"))
