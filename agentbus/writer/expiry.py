"""Cursors that run out while their session is attached, and what is forgotten in the end.

expired      the session is told at once, by way of its gateway, and again after a restart of
             the writer; the cursor stays as a marker
forgotten    a marker that nobody took note of for 720 hours; then the session, when it has no
             cursor left and nobody has held it for as long; not while the clock cannot be trusted
"""

from __future__ import annotations

from typing import Final

from agentbus.errors import AgentbusError
from agentbus.model.ports import Instant
from agentbus.model.session import EXPIRY_MARKER_HOURS, HOUR_MS
from agentbus.sqlite import Busy
from agentbus.store.write import WriteStore
from agentbus.wire.events import Note, Send
from agentbus.wire.links import GATEWAY_WRITER, CursorsExpired
from agentbus.writer.ages import Ages
from agentbus.writer.events import Effect
from agentbus.writer.state import State
from agentbus.writer.subscriptions import expired_info

LOOK_SECONDS: Final = 5.0
"""How late a session may hear that a cursor has run out."""

FORGET_EVERY_MS: Final = HOUR_MS
RETRY_SECONDS: Final = 1.0
MOST: Final = 500
"""Markers, and sessions, that one transaction forgets."""


class Expiry:
    """`at` is the monotonic time of the next look, None for none."""

    def __init__(self, store: WriteStore, ages: Ages) -> None:
        self._store = store
        self._ages = ages
        self._forgot_at: int | None = None
        self.at: float | None = 0.0

    def due(self, state: State, now: Instant, *, linked: bool) -> list[Effect]:
        """Looks, if it is time; `linked` tells that there is a gateway to hear of it."""
        if self.at is not None and now.monotonic < self.at:
            return []
        self.at = now.monotonic + LOOK_SECONDS if state.attached else None
        effects = self._expired(state, self._ages.patient(now)) if linked else []
        return effects + self._forget(state, now)

    def _expired(self, state: State, now: int) -> list[Effect]:
        effects: list[Effect] = []
        for attachment, attached in state.attached.items():
            fresh = [
                cursor
                for cursor in attached.subscriptions.values()
                if cursor.is_expired(now) and cursor.id not in attached.told
            ]
            if fresh:
                attached.told.update(cursor.id for cursor in fresh)
                told = [expired_info(state, cursor) for cursor in fresh]
                effects.append(Send(GATEWAY_WRITER, CursorsExpired(attachment, told)))
        return effects

    def _forget(self, state: State, now: Instant) -> list[Effect]:
        if not self._ages.trusted(now):
            return []
        milliseconds = int(now.wall * 1000)
        forgot_at = self._forgot_at
        if forgot_at is not None and abs(milliseconds - forgot_at) < FORGET_EVERY_MS:
            return []
        oldest = milliseconds - EXPIRY_MARKER_HOURS * HOUR_MS
        try:
            with self._store.transaction():
                markers = self._store.cursors.forget_expired(oldest, MOST)
                sessions = self._store.people.forget_idle(oldest, MOST)
        except Busy:
            self.at = now.monotonic + RETRY_SECONDS
            return []
        except AgentbusError as error:
            fields = {"code": error.code, "text": error.message}
            self.at = now.monotonic + LOOK_SECONDS
            return [Note("warn", "forgetting_failed", fields)]
        for attached in state.attached.values():
            for number in markers:
                attached.subscriptions.pop(number, None)
        if len(markers) < MOST and sessions < MOST:
            self._forgot_at = milliseconds
        else:
            self.at = now.monotonic
        return []
