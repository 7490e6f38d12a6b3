"""What one turn of the core has to say: effects, and the timer over named alarms."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from agentbus.model.ports import Instant
from agentbus.projector.alarms import Alarms
from agentbus.projector.events import Effect
from agentbus.wire.events import Note, Send, WakeAt


class Outbox:
    """Shared by the parts of the core; `now` is the monotonic time of the event in hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self._alarms = Alarms()
        self._effects: list[Effect] = []

    def begin(self, now: Instant) -> None:
        """The turn of an event that came at this instant."""
        self.now = now.monotonic

    def finish(self) -> list[Effect]:
        """The effects of the turn."""
        when = self._alarms.wake_at()
        if when is not None:
            self.do(WakeAt(when))
        effects, self._effects = self._effects, []
        return effects

    def do(self, effect: Effect) -> None:
        """In the order of the calls."""
        self._effects.append(effect)

    def send(self, link: str, message: msgspec.Struct) -> None:
        """A message to a link."""
        self._effects.append(Send(link, message))

    def note(self, level: Literal["info", "warn", "error"], action: str, **fields: Any) -> None:
        """A line for the log."""
        self._effects.append(Note(level, action, fields))

    def alarm(self, name: str, seconds: float) -> None:
        """Rings once, so long from now; replaces the one of this name."""
        self._alarms.set(name, self.now + seconds)

    def silence(self, name: str) -> None:
        """The alarm of this name does not ring."""
        self._alarms.cancel(name)

    def due(self) -> list[str]:
        """The alarms that ring now."""
        return self._alarms.due(self.now)
