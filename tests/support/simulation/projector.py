"""The shell around the projector's core, with a connection to the model of Redis."""

from __future__ import annotations

from typing import Any

from agentbus.projector.core import Core
from agentbus.projector.events import (
    Ask,
    Connect,
    Connected,
    Disconnect,
    Disconnected,
    Replied,
)
from agentbus.store.read import Reader
from agentbus.wire.events import Note
from agentbus.wire.links import (
    PROJECTOR_GATEWAY,
    WRITER_PROJECTOR,
    GatewayToProjector,
    WriterToProjector,
)
from tests.support.simulation.children import Child, check_note
from tests.support.simulation.disk import Disk
from tests.support.simulation.redis import Connection, Place


class Projector:
    """`core` is there for checks."""

    def __init__(self, child: Child, disk: Disk, place: Place, boot: str) -> None:
        self.unions = {WRITER_PROJECTOR: WriterToProjector, PROJECTOR_GATEWAY: GatewayToProjector}
        self._child = child
        self._place = place
        self._disk = disk
        self._source = Reader(disk.database)
        self.core = Core(self._source, boot)
        self._number = 0
        self._connection: Connection | None = None

    def start(self) -> None:
        """Links are served at once."""
        self._child.ready()

    def handle(self, event: Any) -> list[Any]:
        """One event."""
        with self._disk.used():
            return list(self.core.handle(event, self._child.scheduler.instant()))

    def perform(self, effect: Any) -> None:
        """Its connection."""
        match effect:
            case Ask(number, commands):
                if self._connection is not None and number == self._number:
                    self._connection.send(commands, lambda replies: self._replied(number, replies))
            case Connect(number, path):
                self._number = number
                self._place.connect(
                    self._child,
                    path,
                    lambda connection: self._connected(number, connection),
                    lambda reason: self._lost(number, reason),
                )
            case Disconnect(number):
                if number == self._number:
                    self._disconnect()
            case Note(level, action, fields):
                check_note(level, action, fields)
            case _:
                raise TypeError(type(effect))

    def _connected(self, number: int, connection: Connection) -> None:
        if number != self._number:
            connection.close()
            return
        self._connection = connection
        self._child.happened(Connected(number))

    def _replied(self, number: int, replies: list[Any]) -> None:
        if number == self._number:
            self._child.happened(Replied(number, replies))

    def _lost(self, number: int, reason: str) -> None:
        if number == self._number:
            self._connection = None
            self._child.happened(Disconnected(number, reason))

    def _disconnect(self) -> None:
        self._number = 0
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """As it is when it dies."""

    def died(self) -> None:
        """Connection and file are not open any more."""
        self._disconnect()
        self._source.close()
