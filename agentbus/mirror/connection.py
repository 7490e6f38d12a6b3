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
from agentbus.mirror.resp import Command, Refused, Reply, ReplyDecoder, pack

Done = Callable[[list[Reply]], None]
Lost = Callable[[str], None]


class _Pending:
    """A request whose replies are not all there; `failed` is for those who wait."""

    __slots__ = ("done", "failed", "replies", "wanted")

    def __init__(self, wanted: int, done: Done, failed: Lost | None) -> None:
        self.wanted = wanted
        self.done = done
        self.failed = failed
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
        """Calls `done` with one reply a command; never, where the connection is lost before."""
        self._ask(commands, done, None)

    async def request(self, *commands: Command) -> list[Reply]:
        """One reply a command, refusals among them. Raises Unavailable where it is lost."""
        future: asyncio.Future[list[Reply]] = asyncio.get_running_loop().create_future()

        def answer(replies: list[Reply]) -> None:
            if not future.done():
                future.set_result(replies)

        def fail(reason: str) -> None:
            if not future.done():
                future.set_exception(Unavailable(reason))

        self._ask(commands, answer, fail)
        return await future

    async def demand(self, command: Command) -> Reply:
        """The reply to one command. Raises Unavailable also where Redis refuses it."""
        (reply,) = await self.request(command)
        if isinstance(reply, Refused):
            raise Unavailable(f"Redis refused {command[0].decode()}: {reply.brief}")
        return reply

    def close(self) -> None:
        """Ends it quietly; whoever waits gets Unavailable."""
        self._lost = None
        self._end("the connection to Redis was closed")

    def _ask(self, commands: Sequence[Command], done: Done, failed: Lost | None) -> None:
        if self._transport is None:
            if failed is not None:
                failed("there is no connection to Redis")
            return
        self._pending.append(_Pending(len(commands), done, failed))
        self._transport.write(pack(commands))

    def _end(self, reason: str) -> None:
        transport, self._transport = self._transport, None
        if transport is None:
            return
        transport.abort()
        pending, self._pending = self._pending, deque()
        for request in pending:
            if request.failed is not None:
                request.failed(reason)
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
                return
            request = self._pending[0]
            request.replies.append(reply)
            if len(request.replies) == request.wanted:
                self._pending.popleft()
                request.done(request.replies)

    def connection_lost(self, exc: Exception | None) -> None:  # type: ignore[explicit-override]
        """Called by the event loop."""
        self._end(f"the connection to Redis was lost ({exc or 'closed by the server'})")


async def connect(path: str, lost: Lost | None = None) -> Connection:
    """Connects to the Unix socket at `path`. Raises Unavailable."""
    loop = asyncio.get_running_loop()
    try:
        _, connection = await loop.create_unix_connection(lambda: Connection(lost), path)
    except OSError as error:
        raise Unavailable(f"Redis cannot be reached at {path}: {error.strerror}") from error
    return connection
