"""The projector's process: the core on a uvloop, with a connection to Redis and the database."""

from __future__ import annotations

from functools import partial
from typing import Any, assert_never

from agentbus.errors import Unavailable
from agentbus.mirror import connection as redis
from agentbus.mirror.resp import Reply
from agentbus.projector import points
from agentbus.projector.core import Core
from agentbus.projector.events import (
    Ask,
    Connect,
    Connected,
    Disconnect,
    Disconnected,
    Event,
    Replied,
)
from agentbus.projector.ports import Source
from agentbus.runtime import logs, tasks
from agentbus.runtime.child import Child
from agentbus.runtime.context import ChildContext
from agentbus.runtime.tokens import SystemTokens
from agentbus.store.read import Reader
from agentbus.wire.events import Note
from agentbus.wire.links import (
    PROJECTOR_GATEWAY,
    WRITER_PROJECTOR,
    GatewayToProjector,
    WriterToProjector,
)

_log = logs.get(__name__)


def run(context: ChildContext) -> int:
    """Entry point of the service; the exit code."""
    unions = {WRITER_PROJECTOR: WriterToProjector, PROJECTOR_GATEWAY: GatewayToProjector}
    child = Child(context, unions)
    source = Reader(context.paths.database)
    core = points.watched(Core(source, SystemTokens().token()), child.fault)
    return child.run(Projector(child, core, source))


class Projector:
    """The shell: carries effects out and turns what follows from them into events."""

    def __init__(self, child: Child, core: Core, source: Source) -> None:
        self._child = child
        self._core = core
        self._source = source
        self._number = 0
        self._connection: redis.Connection | points.TornConnection | None = None

    async def start(self) -> None:
        """Links are served at once; database and Redis are awaited by the core."""
        self._child.ready()

    async def close(self) -> None:
        """Closes the connection and the database."""
        self._disconnect(self._number)
        self._source.close()

    def handle(self, event: Event) -> None:
        """One event of the child's or of the connection's."""
        effects = self._core.handle(event, self._child.now())
        for effect in self._child.perform(effects):
            self._perform(effect)

    def _perform(self, effect: Ask | Note | Connect | Disconnect) -> None:
        match effect:
            case Ask(number, commands):
                if self._connection is not None and number == self._number:
                    self._connection.send(commands, partial(self._replied, number))
            case Note(level, action, fields):
                _write_note(level, action, fields)
            case Connect(number, path):
                self._number = number
                connecting = self._connect(number, path)
                _ = tasks.start(connecting, "connect-redis", on_crash=self._crashed)
            case Disconnect(number):
                self._disconnect(number)
            case _:
                assert_never(effect)

    async def _connect(self, number: int, path: str) -> None:
        try:
            connection = await redis.connect(path, partial(self._lost, number))
        except Unavailable as error:
            self._lost(number, error.message)
            return
        if number != self._number:  # another one is asked for by now, or none
            connection.close()
            return
        self._connection = points.torn(connection, self._child.fault)
        self._happened(Connected(number))

    def _happened(self, event: Event) -> None:
        """An event of the connection's: what `Child` does for its own, done here."""
        try:
            self.handle(event)
        except Exception as error:  # noqa: BLE001 - the core's state is not to be trusted any more
            self._child.crash(error, type(event).__name__)

    def _replied(self, number: int, replies: list[Reply]) -> None:
        if number == self._number:
            self._happened(Replied(number, replies))

    def _lost(self, number: int, reason: str) -> None:
        if number == self._number:
            self._connection = None
            self._happened(Disconnected(number, reason))

    def _disconnect(self, number: int) -> None:
        if number != self._number:
            return
        self._number = 0
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _crashed(self, error: BaseException) -> None:
        self._child.crash(error, "connect-redis")


def _write_note(level: str, action: str, fields: dict[str, Any]) -> None:
    match level:
        case "error":
            _log.error(action, **fields)
        case "warn":
            _log.warn(action, **fields)
        case _:
            _log.info(action, **fields)
