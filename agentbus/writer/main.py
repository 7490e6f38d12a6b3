"""The writer's process: build, wire, run, close."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

from agentbus.model.ports import Instant
from agentbus.runtime import exits, faults, logs
from agentbus.runtime.child import Child
from agentbus.runtime.context import ChildContext
from agentbus.runtime.faults import Point
from agentbus.runtime.tokens import SystemTokens
from agentbus.store.write import WriteStore
from agentbus.wire.events import Note, Send
from agentbus.wire.links import (
    GATEWAY_WRITER,
    WRITER_PROJECTOR,
    Evicted,
    GatewayToWriter,
    ProjectorToWriter,
    Report,
)
from agentbus.writer.awaiting import Awaiting
from agentbus.writer.core import Core
from agentbus.writer.opening import open_store

_log = logs.get(__name__)


class Writer:
    """The shell around the core: the database and the log are its only effects of its own."""

    def __init__(self, context: ChildContext, child: Child) -> None:
        self._context = context
        self._child = child
        self._tokens = SystemTokens()
        self._store: WriteStore | None = None
        self._core: Core | None = None

    async def start(self) -> None:
        """Waits out a foreign lock, and a disk that fails for a while; pings are answered."""
        core = await self._begin()
        if core is None:
            self._child.exit(exits.OK)
            return
        self._core = faults.watched(core, self._child.fault, before=_said)
        self._child.straight(GATEWAY_WRITER, self._heard)
        self._child.ready()

    def _heard(self, operations: list[GatewayToWriter]) -> None:
        assert self._core is not None
        if self._child.fault is not faults.no_fault:
            for operation in operations:
                if isinstance(operation, Report):
                    self._child.fault(Point.REPORT_QUEUED)
        self._core.queue(operations)

    async def _begin(self) -> Core | None:
        """None where the daemon stops meanwhile."""
        awaiting = Awaiting(self._open)
        while not self._child.asked_to_stop:
            core = awaiting.attempt(self._child.clock.now())
            effects, awaiting.effects = awaiting.effects, []
            self._perform(effects)
            if core is not None:
                return core
            await asyncio.sleep(awaiting.retry_seconds)
        return None

    def _open(self, now: Instant) -> Core:
        settings, fault = self._context.settings, self._child.fault
        store = open_store(self._context.paths.database, settings, self._tokens, now, fault)
        try:
            core = Core(store, settings, self._tokens, fault, config_path=self._context.config_path)
        except BaseException:
            store.close()
            raise
        self._store = store
        return core

    @staticmethod
    def _note(note: Note) -> None:
        getattr(_log, note.level)(note.action, **note.fields)

    def handle(self, event: Any) -> None:
        """One event, and what follows from it."""
        assert self._core is not None
        effects = self._core.handle(event, self._child.now())
        if effects:
            self._perform(effects)

    def _perform(self, effects: Iterable[Any]) -> None:
        for effect in self._child.perform(self._answers_first(effects)):
            match effect:
                case Note():
                    self._note(effect)
                case _:
                    raise TypeError(f"no such effect: {type(effect).__name__}")

    def _answers_first(self, effects: Iterable[Any]) -> Iterator[Any]:
        """Answers leave before the projector's frame is made."""
        for effect in effects:
            if isinstance(effect, Send) and effect.link == WRITER_PROJECTOR:
                self._child.flush(GATEWAY_WRITER)
            yield effect

    async def close(self) -> None:
        """The last connection to close removes the WAL."""
        if self._store is not None:
            self._store.close()


def _said(effect: Any) -> Point | None:
    match effect:
        case Send(message=Evicted(boundaries=boundaries)) if boundaries:
            return Point.CHUNK_DELETED
        case _:
            return None


def run(context: ChildContext) -> int:
    """The entry point of the forked child; the exit code."""
    unions = {GATEWAY_WRITER: GatewayToWriter, WRITER_PROJECTOR: ProjectorToWriter}
    child = Child(context, unions)
    return child.run(Writer(context, child))
