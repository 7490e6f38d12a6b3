"""The shell around the writer's core; the database is real."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentbus.config import Settings
from agentbus.model.ports import Tokens
from agentbus.runtime.faults import Point
from agentbus.store.write import WriteStore
from agentbus.wire.events import Note
from agentbus.wire.links import (
    GATEWAY_WRITER,
    WRITER_PROJECTOR,
    GatewayToWriter,
    ProjectorToWriter,
)
from agentbus.writer.core import Core
from agentbus.writer.opening import open_store
from tests.support.simulation.children import Child, check_note
from tests.support.simulation.disk import Disk
from tests.support.simulation.processes import Killed


class Writer:
    """`committed` is called after every event that changed the database."""

    def __init__(
        self,
        child: Child,
        disk: Disk,
        settings: Settings,
        tokens: Tokens,
        committed: Callable[[], None],
    ) -> None:
        self.unions = {GATEWAY_WRITER: GatewayToWriter, WRITER_PROJECTOR: ProjectorToWriter}
        self.dies_at: Point | None = None
        self._child = child
        self._disk = disk
        self._settings = settings
        self._tokens = tokens
        self._committed = committed
        self._store: WriteStore | None = None
        self._core: Core | None = None
        self._changes = 0

    def start(self) -> None:
        """Opens the database."""
        now = self._child.scheduler.instant()
        with self._disk.used():
            store = open_store(self._disk.database, self._settings, self._tokens, now)
            try:
                self._core = Core(store, self._settings, self._tokens, self._fault)
            except BaseException:
                store.close()
                raise
        self._store = store
        self._disk.opened(store)
        self._child.ready()

    def _fault(self, point: Point) -> None:
        if point is Point.COMMITTED:
            with self._disk.looked_at():
                self._committed()  # before anything of it may be evicted again
        if point is self.dies_at:
            raise Killed

    def handle(self, event: Any) -> list[Any]:
        """And looks at what it has made durable, even when it has died of that."""
        assert self._core is not None
        try:
            with self._disk.used():
                return list(self._core.handle(event, self._child.scheduler.instant()))
        finally:
            changes = self._disk.changes()
            if changes != self._changes:
                self._changes = changes
                self._committed()

    def perform(self, effect: Any) -> None:
        """It has but notes."""
        match effect:
            case Note(level, action, fields):
                check_note(level, action, fields)
            case _:
                raise TypeError(type(effect))

    def close(self) -> None:
        """As it is when it dies."""

    def died(self) -> None:
        """The file is not open any more."""
        if self._store is not None:
            self._disk.opened(None)
            self._store.close()
            self._store = None
