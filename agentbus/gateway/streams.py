"""Reading streams from Redis for the core; reads that are under way together are pipelined."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from agentbus.errors import Unavailable
from agentbus.gateway.events import ReadStream, StreamRead
from agentbus.gateway.redis_link import Connect, RedisLink
from agentbus.mirror.read import Reading
from agentbus.mirror.resp import Reply
from agentbus.wire.error_codes import to_failure

CallSoon = Callable[[Callable[[], None]], object]


class Streams:
    """The reads under way. Each is answered exactly once, in a later turn of the loop."""

    def __init__(
        self, connect: Connect, call_soon: CallSoon, on_read: Callable[[StreamRead], None]
    ) -> None:
        self._call_soon = call_soon
        self._on_read = on_read
        self._link = RedisLink(connect, self._opened, self._lost)
        self._readings: dict[int, Reading] = {}

    def use(self, path: str | None) -> None:
        """Reads from there from now on."""
        self._link.use(path)

    def close(self) -> None:
        """Reads no more."""
        self.use(None)

    def read(self, asked: ReadStream) -> None:
        """Begins a read."""
        if self._link.path is None:
            self._fail(asked.ref, "there is no Redis to read from")
            return
        self._readings[asked.ref] = Reading(
            asked.channel_id,
            asked.edge,
            forward=asked.forward,
            count=asked.count,
            max_bytes=asked.max_bytes,
        )
        if self._link.is_open:
            self._step(asked.ref)
        else:
            self._link.open()

    def _opened(self) -> None:
        for ref in list(self._readings):
            self._step(ref)

    def _lost(self, reason: str) -> None:
        for ref in list(self._readings):
            self._fail(ref, reason)

    def _step(self, ref: int) -> None:
        self._link.ask(self._readings[ref].commands(), partial(self._replied, ref))

    def _replied(self, ref: int, replies: list[Reply]) -> None:
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
        self._on_read(StreamRead(ref, page.entries, page.more))

    def _fail(self, ref: int, reason: str) -> None:
        self._readings.pop(ref, None)
        failed = StreamRead(ref, [], False, to_failure(Unavailable(reason)))
        self._call_soon(partial(self._on_read, failed))
