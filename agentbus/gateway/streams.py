"""Reading streams from Redis for the core; reads that are under way together are pipelined."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from agentbus.errors import Unavailable
from agentbus.gateway.events import ReadStream, StreamRead
from agentbus.mirror import connection as redis
from agentbus.mirror.read import Reading
from agentbus.mirror.resp import Reply
from agentbus.runtime import tasks
from agentbus.wire.error_codes import to_failure


class Streams:
    """One connection, made when it is first needed.

    Every read is answered exactly once, in a later turn of the loop.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_read: Callable[[StreamRead], None]
    ) -> None:
        self._loop = loop
        self._on_read = on_read
        self._path: str | None = None
        self._connection: redis.Connection | None = None
        self._generation = 0
        self._readings: dict[int, Reading] = {}
        self._connecting = False

    def use(self, path: str | None) -> None:
        """Reads from there from now on."""
        self._path = path
        self._drop("Redis is being replaced")

    def close(self) -> None:
        """Reads no more."""
        self.use(None)

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
            _ = tasks.start(self._connect(self._path, self._generation), "connect-streams")

    async def _connect(self, path: str, generation: int) -> None:
        try:
            connection = await redis.connect(path, partial(self._lost, generation))
        except Unavailable as error:
            self._lost(generation, error.message)
            return
        if generation != self._generation:  # another place is asked for by now
            connection.close()
            return
        self._connection, self._connecting = connection, False
        for ref in list(self._readings):
            self._step(ref)

    def _step(self, ref: int) -> None:
        reading = self._readings[ref]
        assert self._connection is not None
        self._connection.send([reading.command()], partial(self._replied, ref))

    def _replied(self, ref: int, replies: list[Reply]) -> None:
        reading = self._readings.get(ref)
        if reading is None:
            return
        try:
            reading.take(replies[0])
        except Unavailable as error:
            self._fail(ref, error.message)
            return
        if not reading.done:
            self._step(ref)
            return
        del self._readings[ref]
        page = reading.page()
        self._on_read(StreamRead(ref, page.entries, page.more))

    def _lost(self, generation: int, reason: str) -> None:
        if generation == self._generation:
            self._drop(reason)

    def _drop(self, reason: str) -> None:
        """Gives the connection up, and all that was asked of it."""
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
        self._loop.call_soon(self._on_read, failed)
