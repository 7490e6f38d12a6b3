"""The gateway's orderly end: nothing new is begun, what was accepted and reported is finished."""

from __future__ import annotations

from typing import Final

from agentbus.gateway import replies
from agentbus.gateway.parts import Parts
from agentbus.runtime import exits
from agentbus.wire.events import Exit, Send
from agentbus.wire.links import CONTROL, ResetRequested, StopRequested
from agentbus.wire.rpc import StoppingNote

PATIENCE_SECONDS: Final = 3.0
"""Shorter than the supervisor's."""

OVERDUE: Final = "stop"
"""Name of the alarm at which the end comes whatever is unfinished."""


class Stopping:
    """From the request to the exit."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._over = False
        self._reset = False
        parts.bells[OVERDUE] = self._end

    def requested(self) -> None:
        """Somebody wants the daemon to stop; the supervisor does it."""
        self._parts.out.effects.append(Send(CONTROL, StopRequested()))

    def reset_requested(self) -> None:
        """Somebody wants everything on the bus destroyed; the supervisor does it, and starts anew:
        so adapters are to come back by themselves."""
        self._reset = True
        self._parts.out.effects.append(Send(CONTROL, ResetRequested()))

    def begin(self) -> None:
        """The supervisor says so."""
        parts = self._parts
        if parts.condition.stopping:
            return
        parts.condition.stopping = True
        if self._reset:
            parts.condition.ending = "the bus is being reset: all that was on it is gone"
        farewell = StoppingNote(reason="stop", intentional=not self._reset)
        note = replies.notification(b"stopping", farewell)
        parts.reports.flush()
        for connection in parts.connections.values():
            parts.out.line(connection, note)
            for attachment in connection.attachments.values():
                parts.reports.pass_own(attachment)
        parts.greeter.stop()
        parts.admission.drop_all()
        parts.searching.drop_all()
        parts.alarms.set(OVERDUE, parts.alarms.now + PATIENCE_SECONDS)

    def look(self) -> None:
        """Ends once nothing is unfinished."""
        if self._parts.writer.idle and self._parts.reports.idle:
            self._end()

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self._parts.out.effects.append(Exit(exits.OK))
