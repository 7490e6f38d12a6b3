"""A connection to Redis that is made when it is first needed, and anew after it was lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from agentbus.errors import Unavailable
from agentbus.mirror import connection as redis
from agentbus.mirror.resp import Command, Reply
from agentbus.runtime import tasks

OnLost = Callable[[str], None]


class Connection(Protocol):
    """As `mirror.connection` has them."""

    def send(self, commands: Sequence[Command], done: Callable[[list[Reply]], None]) -> None:
        """Has `done` called with one reply a command, unless the connection is lost before."""

    def close(self) -> None:
        """Ends it quietly."""


OnConnection = Callable[[Connection], None]

Connect = Callable[[str, OnConnection, OnLost], None]
"""Connects to a path: one of the two is called, in a later turn; the second also when a connection
is lost that was not closed."""


def connecting(name: str) -> Connect:
    """Over real sockets, in tasks of that name."""

    async def connect(path: str, on_connection: OnConnection, on_lost: OnLost) -> None:
        try:
            connection = await redis.connect(path, on_lost)
        except Unavailable as error:
            on_lost(error.message)
        else:
            on_connection(connection)

    def begin(path: str, on_connection: OnConnection, on_lost: OnLost) -> None:
        _ = tasks.start(connect(path, on_connection, on_lost), f"connect-{name}")

    return begin


class RedisLink:
    """Says `on_open` when it can be asked, and `on_lost` when what was asked is not answered."""

    def __init__(
        self, connect: Connect, on_open: Callable[[], None], on_lost: Callable[[str], None]
    ) -> None:
        self._connect = connect
        self._on_open = on_open
        self._on_lost = on_lost
        self._connection: Connection | None = None
        self._generation = 0
        self._connecting = False
        self.path: str | None = None
        """Where the server is; None: nowhere."""

    @property
    def is_open(self) -> bool:
        """Whether it can be asked now."""
        return self._connection is not None

    def use(self, path: str | None) -> None:
        """Another server from now on."""
        self.path = path
        self._drop("Redis is being replaced")

    def open(self) -> None:
        """Connects, unless that is done or under way; `on_open` or `on_lost` follow."""
        if self._connection is None and not self._connecting and self.path is not None:
            self._connecting = True
            generation = self._generation
            self._connect(
                self.path, partial(self._connected, generation), partial(self._lost, generation)
            )

    def ask(self, commands: Sequence[Command], done: Callable[[list[Reply]], None]) -> None:
        """While it is open."""
        assert self._connection is not None
        self._connection.send(commands, done)

    def _connected(self, generation: int, connection: Connection) -> None:
        if generation != self._generation:  # another place is asked for by now
            connection.close()
            return
        self._connection, self._connecting = connection, False
        self._on_open()

    def _lost(self, generation: int, reason: str) -> None:
        if generation == self._generation:
            self._drop(reason)

    def _drop(self, reason: str) -> None:
        self._generation += 1
        self._connecting = False
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        self._on_lost(reason)
