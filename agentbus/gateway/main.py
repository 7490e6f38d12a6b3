"""The gateway's process: the core on a uvloop, with the adapters' sockets and a way to Redis."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Final, assert_never

from agentbus.config import MIB
from agentbus.gateway import points
from agentbus.gateway.core import Core
from agentbus.gateway.engine import Engine
from agentbus.gateway.events import (
    Broke,
    CloseConnection,
    Connected,
    Disconnected,
    Event,
    Find,
    Inspect,
    Lines,
    Measure,
    Measured,
    Note,
    ReadStream,
    SearchEngine,
    SendFirst,
    SendIfRead,
    SendLines,
    Serving,
    StopInspection,
    UseRedis,
)
from agentbus.gateway.holdings import Holdings
from agentbus.gateway.lookups import Lookups
from agentbus.gateway.programs import Programs
from agentbus.gateway.redis_link import connecting
from agentbus.gateway.sockets import Acceptor, AdapterSocket
from agentbus.gateway.streams import Streams
from agentbus.gateway.usage import Usages
from agentbus.runtime import logs
from agentbus.runtime.child import Child
from agentbus.runtime.context import ChildContext, Listening
from agentbus.wire.events import Send
from agentbus.wire.lines import Overlong
from agentbus.wire.links import (
    GATEWAY_INDEXER,
    GATEWAY_WRITER,
    PROJECTOR_GATEWAY,
    IndexerToGateway,
    ProjectorToGateway,
    WriterToGateway,
)

RESULTS_BYTES: Final = 16 * MIB
"""What may wait for an adapter to read it beside its window: a few of the largest results."""

HELD_BYTES: Final = 128 * MIB
"""What may be held for all adapters together: lines that have not ended, what is not read."""

LAST_WRITE_SECONDS: Final = 1.0

_log = logs.get(__name__)

NOTICES_BYTES: Final = MIB
"""Who leaves more than this unread gets no notices on top of it."""

Own = (
    CloseConnection
    | SendFirst
    | SendIfRead
    | ReadStream
    | UseRedis
    | Measure
    | Find
    | Inspect
    | StopInspection
    | SearchEngine
    | Note
    | Broke
    | Serving
)


def run(context: ChildContext) -> int:
    """Entry point of the service; the exit code."""
    unions = {
        GATEWAY_WRITER: WriterToGateway,
        PROJECTOR_GATEWAY: ProjectorToGateway,
        GATEWAY_INDEXER: IndexerToGateway,
    }
    child = Child(context, unions)
    core = points.watched(Core(context.settings, context.config_path), child)
    return child.run(Gateway(child, core, context))


class Gateway:
    """The shell: carries effects out and turns bytes into events."""

    def __init__(self, child: Child, core: Core, context: ChildContext) -> None:
        if context.listener is None:
            raise ValueError("a gateway needs the listening socket")
        self._child = child
        self._core = core
        self._bound = context.settings.prefetch_mib * MIB * 2 + RESULTS_BYTES
        self._acceptor = Acceptor(child.loop, context.listener, self._accepted)
        self._streams = Streams(connecting("streams"), child.loop.call_soon, self._happened)
        self._engine = Engine(child.loop, self._happened)
        self._lookups = Lookups(child.loop, context.paths.database, self._happened)
        self._programs = Programs(context.settings.inspection_command, self._happened)
        self._usages = Usages()
        self._sockets: dict[int, AdapterSocket] = {}
        self._holdings = Holdings(HELD_BYTES)
        self._accepts = 0
        self._unflushed: dict[int, AdapterSocket] = {}

    async def start(self) -> None:
        """Connections are taken at once; whoever asks for more than is known yet waits."""
        self._acceptor.open()

    async def close(self) -> None:
        """Writes what is left (bounded) and closes everything."""
        self._acceptor.close()
        self._streams.close()
        self._engine.close()
        await self._programs.close()
        self._lookups.close()
        self._flush()
        await self._written()
        for adapter in self._sockets.values():
            adapter.close()

    async def _written(self) -> None:
        deadline = self._child.loop.time() + LAST_WRITE_SECONDS
        while any(each.unread for each in self._sockets.values()):
            if self._child.loop.time() > deadline:
                return
            await asyncio.sleep(0.01)

    # ---- events

    def handle(self, event: Any) -> None:
        """One event; the child's or our own."""
        if type(event) is Listening:
            self._acceptor.use(event.socket)
            return
        for effect in self._core.handle(event, self._child.now()):
            if type(effect) is SendLines:  # these two are nearly all there are
                self._send(effect.connection, effect.lines)
            elif type(effect) is Send:
                self._child.send(effect.link, effect.message)
            else:
                for own in self._child.perform([effect]):
                    self._perform(own)

    def _happened(self, event: Event) -> None:
        """An event of our own: what `Child` does for its own, done here."""
        try:
            self.handle(event)
        except Exception as error:  # noqa: BLE001 - the core's state is not to be trusted any more
            self._child.crash(error, type(event).__name__)

    def _accepted(self, sock: socket.socket, trusted: bool) -> None:
        self._accepts += 1
        identity = self._accepts
        if not trusted:
            _log.warn("stranger_refused", connection=identity)
        adapter = AdapterSocket(
            self._child.loop,
            sock,
            identity,
            self._bound,
            self._holdings,
            self._lines,
            self._disconnected,
        )
        self._sockets[identity] = adapter
        adapter.open()
        self._happened(Connected(identity, trusted))

    def _lines(self, connection: int, lines: list[bytes | Overlong]) -> None:
        self._happened(Lines(connection, lines))

    def _disconnected(self, connection: int) -> None:
        self._sockets.pop(connection, None)
        self._unflushed.pop(connection, None)
        self._happened(Disconnected(connection))

    # ---- effects

    def _perform(self, effect: Own) -> None:
        match effect:
            case SendFirst(connection, line):
                self._send_first(connection, line)
            case SendIfRead(connection, line):
                self._send_if_read(connection, line)
            case ReadStream():
                self._streams.read(effect)
            case UseRedis(path):
                self._streams.use(path)
                self._engine.use(path)
            case CloseConnection(connection):
                adapter = self._sockets.pop(connection, None)
                if adapter is not None:
                    adapter.close_when_written()
            case _:
                self._perform_rare(effect)

    def _perform_rare(
        self,
        effect: Measure | Find | Inspect | StopInspection | SearchEngine | Note | Broke | Serving,
    ) -> None:
        match effect:
            case Find():
                self._lookups.find(effect)
            case Inspect():
                self._programs.run(effect)
            case StopInspection(ref):
                self._programs.stop(ref)
            case SearchEngine():
                self._engine.search(effect)
            case Measure(ref, pids):
                usages = self._usages.measure(pids, self._child.clock.now().wall)
                self._child.loop.call_soon(self._happened, Measured(ref, usages))
            case Serving():
                self._child.ready()
            case Note(action, fields):
                _log.warn(action, **fields)
            case Broke(method, error):
                _log.crash("method_broke", error, method=method)
            case _:
                assert_never(effect)

    def _send_first(self, connection: int, line: bytes) -> None:
        adapter = self._sockets.get(connection)
        if adapter is not None:
            adapter.send([line])
            adapter.flush()

    def _send_if_read(self, connection: int, line: bytes) -> None:
        adapter = self._sockets.get(connection)
        if adapter is not None and adapter.unread < NOTICES_BYTES:
            self._send(connection, [line])

    def _send(self, connection: int, lines: list[bytes]) -> None:
        adapter = self._sockets.get(connection)
        if adapter is None:
            return
        adapter.send(lines)
        if not self._unflushed:
            self._child.loop.call_soon(self._flush)
        self._unflushed[connection] = adapter

    def _flush(self) -> None:
        unflushed, self._unflushed = self._unflushed, {}
        for adapter in unflushed.values():
            adapter.flush()
