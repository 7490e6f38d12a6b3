"""The writer's process: build, wire, run, close."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from agentbus.runtime import faults, logs
from agentbus.runtime.child import Child
from agentbus.runtime.context import ChildContext
from agentbus.runtime.faults import Point
from agentbus.runtime.tokens import SystemTokens
from agentbus.sqlite import Busy
from agentbus.store.write import WriteStore
from agentbus.wire.events import Received, Send
from agentbus.wire.links import (
    GATEWAY_WRITER,
    WRITER_PROJECTOR,
    Evicted,
    GatewayToWriter,
    ProjectorToWriter,
    Report,
)
from agentbus.writer.core import Core
from agentbus.writer.events import Note
from agentbus.writer.opening import open_store

OPEN_RETRY_SECONDS: Final = 0.02
LOCKED_AGAIN_SECONDS: Final = 60.0
"""Between two lines that say the database is still locked."""

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
        """Waits out a foreign lock, while pings are answered."""
        self._store = await self._open()
        fault = self._child.fault
        core = Core(
            self._store,
            self._context.settings,
            self._tokens,
            fault,
            config_path=self._context.config_path,
        )
        self._core = faults.watched(core, fault, event=_heard, before=_said)
        self._child.ready()

    async def _open(self) -> WriteStore:
        path, settings = self._context.paths.database, self._context.settings
        since = said = None
        while True:
            now = self._child.clock.now()
            try:
                store = open_store(path, settings, self._tokens, now, self._child.fault)
            except Busy as error:
                since = now.monotonic if since is None else since
                if said is None or now.monotonic - said >= LOCKED_AGAIN_SECONDS:
                    said = now.monotonic
                    waited = round(said - since)
                    _log.warn("database_locked", text=error.message, seconds=waited)
                await asyncio.sleep(OPEN_RETRY_SECONDS)
            else:
                if since is not None:
                    _log.info("database_free", seconds=round(now.monotonic - since, 1))
                return store

    def handle(self, event: Any) -> None:
        """One event, and what follows from it."""
        assert self._core is not None
        effects = self._core.handle(event, self._child.now())
        if effects:
            self._perform(effects)

    def _perform(self, effects: list[Any]) -> None:
        for effect in self._child.perform(effects):
            match effect:
                case Note(level, action, fields):
                    getattr(_log, level)(action, **fields)
                case _:
                    raise TypeError(f"no such effect: {type(effect).__name__}")

    async def close(self) -> None:
        """The last connection to close removes the WAL."""
        if self._store is not None:
            self._store.close()


def _heard(event: Any) -> Point | None:
    match event:
        case Received(message=Report()):
            return Point.REPORT_QUEUED
        case _:
            return None


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
