"""A connection to Redis for the processes that have an event loop.

Requests are written at once, whatever is outstanding, and answered in order: whoever asks bounds
how much. One request is some commands; its answer is their replies together.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import cast

import hiredis

from agentbus.errors import Unavailable
from agentbus.mirror.resp import Command, Reply, ReplyDecoder, pack

Done = Callable[[list[Reply]], None]
Lost = Callable[[str], None]


class _Pending:
    """A request whose replies are not all there."""

    __slots__ = ("done", "replies", "wanted")

    def __init__(self, wanted: int, done: Done) -> None:
        self.wanted = wanted
        self.done = done
        self.replies: list[Reply] = []


class Connection(asyncio.Protocol):
    """One socket. `lost` is called once, with why, unless `close` was called first."""

    def __init__(self, lost: Lost | None = None) -> None:
        self._lost = lost
        self._decoder = ReplyDecoder()
        self._pending: deque[_Pending] = deque()
        self._transport: asyncio.Transport | None = None

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._transport is not None

    def send(self, commands: Sequence[Command], done: Done) -> None:
        """Calls `done` with one reply a command, refusals among them.

        It is never called where the connection is lost before: `lost` is.
        """
        if self._transport is not None:
            self._pending.append(_Pending(len(commands), done))
            self._transport.write(pack(commands))

    def close(self) -> None:
        """Ends it quietly."""
        self._lost = None
        self._end("closed")

    def _end(self, reason: str) -> None:
        transport, self._transport = self._transport, None
        if transport is None:
            return
        transport.abort()
        self._pending.clear()
        if self._lost is not None:
            self._lost(reason)

    # asyncio.Protocol

    def connection_made(  # type: ignore[explicit-override]
        self, transport: asyncio.BaseTransport
    ) -> None:
        """Called by the event loop."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:  # type: ignore[explicit-override]
        """Called by the event loop."""
        try:
            replies = self._decoder.feed(data)
        except hiredis.HiredisError as error:
            self._end(f"Redis sent what is no reply: {error}")
            return
        for reply in replies:
            if not self._pending:
                return  # whoever got a reply has closed the connection
            request = self._pending[0]
            request.replies.append(reply)
            if len(request.replies) == request.wanted:
                self._pending.popleft()
                request.done(request.replies)

    def connection_lost(self, exc: Exception | None) -> None:  # type: ignore[explicit-override]
        """Called by the event loop."""
        reason = exc.strerror if isinstance(exc, OSError) else exc
        self._end(f"the connection to Redis was lost ({reason or 'closed by the server'})")


async def connect(path: str, lost: Lost | None = None) -> Connection:
    """Connects to the Unix socket at `path`. Raises Unavailable."""
    loop = asyncio.get_running_loop()
    try:
        _, connection = await loop.create_unix_connection(lambda: Connection(lost), path)
    except OSError as error:
        raise Unavailable(f"Redis cannot be reached at {path}: {error.strerror}") from error
    return connection
