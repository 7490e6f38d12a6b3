"""The gateway's reads of streams, as `gateway.streams` makes them."""

from __future__ import annotations

from typing import Any

from agentbus.errors import Unavailable
from agentbus.gateway.events import ReadStream, StreamRead
from agentbus.mirror.read import Reading
from agentbus.wire.error_codes import to_failure
from tests.support.simulation.children import Child
from tests.support.simulation.redis import Connection, Place


class Streams:
    """Every read is answered exactly once, in a later turn."""

    def __init__(self, child: Child, place: Place) -> None:
        self._child = child
        self._place = place
        self._path: str | None = None
        self._connection: Connection | None = None
        self._generation = 0
        self._connecting = False
        self._readings: dict[int, Reading] = {}

    def use(self, path: str | None) -> None:
        """Reads from there from now on."""
        self._path = path
        self._drop("Redis is being replaced")

    def close(self) -> None:
        """The process is gone."""
        self._generation += 1
        if self._connection is not None:
            self._connection.close()

    def read(self, asked: ReadStream) -> None:
        """Begins a read."""
        if self._path is None:
            self._fail(asked.ref, "there is no Redis to read from")
            return
        self._readings[asked.ref] = Reading(
            asked.channel_id,
            asked.edge,
            forward=asked.forward,
            count=asked.count,
            max_bytes=asked.max_bytes,
        )
        if self._connection is not None:
            self._step(asked.ref)
        elif not self._connecting:
            self._connecting = True
            generation = self._generation
            self._place.connect(
                self._child,
                self._path,
                lambda connection: self._connected(generation, connection),
                lambda reason: self._lost(generation, reason),
            )

    def _connected(self, generation: int, connection: Connection) -> None:
        if generation != self._generation:
            connection.close()
            return
        self._connection, self._connecting = connection, False
        for ref in list(self._readings):
            self._step(ref)

    def _step(self, ref: int) -> None:
        assert self._connection is not None
        commands = self._readings[ref].commands()
        self._connection.send(commands, lambda replies: self._replied(ref, replies))

    def _replied(self, ref: int, replies: list[Any]) -> None:
        reading = self._readings.get(ref)
        if reading is None:
            return
        try:
            reading.take_all(replies)
        except Unavailable as error:
            self._fail(ref, error.message)
            return
        if not reading.done:
            self._step(ref)
            return
        del self._readings[ref]
        page = reading.page()
        self._child.happened(StreamRead(ref, page.entries, page.more))

    def _lost(self, generation: int, reason: str) -> None:
        if generation == self._generation:
            self._drop(reason)

    def _drop(self, reason: str) -> None:
        self._generation += 1
        self._connecting = False
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        for ref in list(self._readings):
            self._fail(ref, reason)

    def _fail(self, ref: int, reason: str) -> None:
        self._readings.pop(ref, None)
        failed = StreamRead(ref, [], False, to_failure(Unavailable(reason)))
        self._child.call_soon(lambda: self._child.happened(failed))
