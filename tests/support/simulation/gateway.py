"""The shell around the gateway's core, with the adapters' connections and reads of streams."""

from __future__ import annotations

from functools import partial
from typing import Any

from agentbus.config import Settings
from agentbus.errors import AgentbusError
from agentbus.gateway import events as ev
from agentbus.gateway.core import Core
from agentbus.gateway.events import Connected, Disconnected, Lines, Measured
from agentbus.gateway.streams import Streams
from agentbus.store.lookup import Lookup
from agentbus.wire.error_codes import to_failure
from agentbus.wire.lines import LineDecoder
from agentbus.wire.links import (
    GATEWAY_INDEXER,
    GATEWAY_WRITER,
    PROJECTOR_GATEWAY,
    IndexerToGateway,
    ProjectorToGateway,
    WriterToGateway,
)
from agentbus.wire.rpc import MAX_LINE
from tests.support.simulation.children import Broken, Child, check_note
from tests.support.simulation.disk import Disk
from tests.support.simulation.hooks import Hook
from tests.support.simulation.pipes import End
from tests.support.simulation.redis import Place
from tests.support.simulation.sockets import Listener


class Gateway:
    """Its share of the listening socket is given to it with the fork."""

    def __init__(
        self, child: Child, listener: Listener, place: Place, disk: Disk, settings: Settings
    ) -> None:
        self.unions = {
            GATEWAY_WRITER: WriterToGateway,
            PROJECTOR_GATEWAY: ProjectorToGateway,
            GATEWAY_INDEXER: IndexerToGateway,
        }
        self._child = child
        self._listener = listener
        self._core = Core(settings, "/sim/config.json")
        self._streams = Streams(partial(place.connect, child), child.call_soon, child.happened)
        self._hook = Hook(child)
        self._disk = disk
        self._lookup = Lookup(disk.database)
        self._sockets: dict[int, End] = {}
        self._unflushed: dict[int, bytearray] = {}
        self._ending: list[int] = []
        self._accepts = 0
        listener.share(child)

    @property
    def connections(self) -> int:
        """How many adapters are connected."""
        return len(self._sockets)

    def start(self) -> None:
        """Connections are taken at once."""
        self._listener.accept(self._child, self._accepted)

    def handle(self, event: Any) -> list[Any]:
        """One event."""
        return list(self._core.handle(event, self._child.scheduler.instant()))

    def _accepted(self, end: End) -> None:
        self._accepts += 1
        identity = self._accepts
        decoder = LineDecoder(MAX_LINE)
        self._sockets[identity] = end
        self._child.happened(Connected(identity, True))
        end.incoming.read(
            self._child,
            lambda data, _: self._lines(identity, decoder.feed(data)),
            lambda: self._disconnected(identity),
        )

    def _lines(self, identity: int, lines: list[Any]) -> None:
        if lines and identity in self._sockets:
            self._child.happened(Lines(identity, lines))

    def _disconnected(self, identity: int) -> None:
        end = self._sockets.pop(identity, None)
        if end is not None:
            self._unflushed.pop(identity, None)
            end.close()
            self._child.happened(Disconnected(identity))

    def perform(self, effect: Any) -> None:  # noqa: C901 - one flat match
        """Lines, reads, and the news that it serves."""
        match effect:
            case ev.SendLines(identity, lines):
                self._send(identity, b"".join(lines))
            case ev.SendIfRead(identity, line):
                self._send(identity, line)
            case ev.SendFirst(identity, line):
                self._send(identity, line)
                self._flush()
            case ev.CloseConnection(identity):
                self._ending.append(identity)
                self._child.call_soon(self._flush)
            case ev.ReadStream():
                self._streams.read(effect)
            case ev.Find():
                found = self._find(effect)
                self._child.call_soon(lambda: self._child.happened(found))
            case ev.Inspect():
                self._hook.run(effect)
            case ev.StopInspection(ref):
                self._hook.stop(ref)
            case ev.UseRedis(path):
                self._streams.use(path)
            case ev.Measure(ref, _):
                self._child.call_soon(lambda: self._child.happened(Measured(ref, {})))
            case ev.Serving():
                self._child.ready()
            case ev.Note(action, fields):
                check_note("warn", action, fields)
            case ev.Broke(method, error):
                raise Broken(f"{method} broke") from error
            case _:
                raise TypeError(type(effect))

    def _find(self, asked: ev.Find) -> ev.Found:
        find = self._lookup.message if asked.message else self._lookup.memory
        try:
            with self._disk.used():
                return ev.Found(asked.ref, find(asked.identity))
        except AgentbusError as error:
            return ev.Found(asked.ref, None, to_failure(error))

    def _send(self, identity: int, line: bytes) -> None:
        if identity not in self._sockets:
            return
        if not self._unflushed:
            self._child.call_soon(self._flush)
        self._unflushed.setdefault(identity, bytearray()).extend(line)

    def _flush(self) -> None:
        unflushed, self._unflushed = self._unflushed, {}
        for identity, data in unflushed.items():
            self._child.write(self._sockets[identity].outgoing, bytes(data))
        ending, self._ending = self._ending, []
        for identity in ending:
            end = self._sockets.pop(identity, None)
            if end is not None:
                end.close()

    def close(self) -> None:
        """Writes what is left."""
        self._flush()

    def died(self) -> None:
        """Its sockets are closed."""
        self._listener.leave(self._child)
        self._streams.close()
        self._lookup.close()
        for end in self._sockets.values():
            end.close()
