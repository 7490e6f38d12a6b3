"""The gateway without its sockets: events in, effects out.

The parts, by the way of a message: `requests` (lines), `attachments`, `sending` and `memories` with
`accept`, `admission` with `rates`, `lanes` and `inspect`, `writer_link` with `pending`, then `push`
with `channels`, and `reports` back. What is read: `history`, `finds`, `searching`, `inbox`,
`directory`, `status`. `condition` knows whether the bus is ready, `outbox` collects the effects,
`alarms` the deadlines.
"""

from __future__ import annotations

from math import inf
from typing import assert_never

from agentbus.config import MIB, Settings
from agentbus.gateway.connections import Connection
from agentbus.gateway.daemon_links import DaemonLinks
from agentbus.gateway.events import (
    CloseConnection,
    Connected,
    Disconnected,
    Effect,
    Event,
    Found,
    Inspected,
    Lines,
    Measured,
    Searched,
    StreamRead,
)
from agentbus.gateway.methods import Methods
from agentbus.gateway.parts import Parts
from agentbus.gateway.stopping import Stopping
from agentbus.model.ports import Instant
from agentbus.model.window import Window
from agentbus.wire.events import Closed, Opened, Received, TurnEnded, WakeAt, Woke


class Core:
    """The state of one gateway."""

    def __init__(self, settings: Settings, config_path: str) -> None:
        self._settings = settings
        self._parts = parts = Parts(settings, config_path)
        self._stopping = Stopping(parts)
        self._methods = Methods(parts, self._stopping)
        self._links = DaemonLinks(parts, self._stopping)
        self._armed = inf

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """Takes one event; what the shell is to do."""
        parts = self._parts
        parts.alarms.set_time(now)
        match event:
            case Lines() | Connected() | Disconnected():
                self._adapter(event)
            case Received() | Opened() | Closed():
                self._links.heard(event)
            case StreamRead():
                parts.reads.was_read(event)
            case Found() | Inspected() | Searched() | Measured():
                self._answered(event)
            case Woke():
                self._armed = inf
                self._ring()
            case TurnEnded():
                pass
            case _:
                assert_never(event)
        return self._end()

    def _answered(self, event: Found | Inspected | Searched | Measured) -> None:
        parts = self._parts
        match event:
            case Found():
                parts.finds.found(event)
            case Inspected():
                parts.admission.inspector.inspected(event)
            case Searched():
                parts.searching.answered(event.answer)
            case Measured():
                parts.status.measured(event)
            case _:
                assert_never(event)

    def _end(self) -> list[Effect]:
        parts = self._parts
        if parts.condition.stopping:
            self._stopping.look()
        if parts.alarms.next < self._armed:
            self._armed = parts.alarms.next
            parts.out.effects.append(WakeAt(self._armed))
        return parts.out.take()

    def _adapter(self, event: Lines | Connected | Disconnected) -> None:
        match event:
            case Lines():
                connection = self._parts.connections.get(event.connection)
                if connection is not None:
                    self._methods.lines(connection, event.contents)
            case Connected():
                self._connected(event)
            case Disconnected():
                gone = self._parts.connections.pop(event.connection, None)
                if gone is not None:
                    self._parts.attachments.disconnected(gone)
                    self._parts.searching.disconnected(gone)
            case _:
                assert_never(event)

    def _connected(self, event: Connected) -> None:
        if not event.trusted:
            self._parts.out.effects.append(CloseConnection(event.connection))
            return
        settings = self._settings
        window = Window(settings.prefetch_messages, settings.prefetch_mib * MIB)
        self._parts.connections[event.connection] = Connection(event.connection, window)

    def _ring(self) -> None:
        for name in self._parts.alarms.take_due():
            self._parts.ring(name)
