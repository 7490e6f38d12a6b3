"""An agent that changes memories, whoever has made them: each change until it is answered."""

from __future__ import annotations

from typing import Final

from tests.support.simulation.clients import Arguments, Client, Result
from tests.support.simulation.records import require
from tests.support.simulation.scheduler import Scheduler
from tests.support.simulation.truth import Truth
from tests.support.simulation.workload import FULL, MISSING, USED, code_of, word

DELETED: Final = 0.2
DELETED_WHEN_FULL: Final = 0.8
"""How often a change is the end of a memory."""

NEW: Final = 5
"""One of the newest so many, half of the times: whoever has not received it yet is told."""


class Editor:
    """One change at a time."""

    def __init__(self, client: Client, truth: Truth, scheduler: Scheduler, pace: float) -> None:
        self.busy = 0
        """Changes that are not answered yet."""
        self._client = client
        self._truth = truth
        self._scheduler = scheduler
        self._chance = scheduler.chance(f"editor {client.name}")
        self._pace = pace
        self._count = 0
        self._full = False
        self._stopped = True
        self._alive = False

    def begin(self) -> None:
        """Goes on until `stop`."""
        self._stopped = False
        if not self._alive:
            self._pause()

    def stop(self) -> None:
        """What was begun is finished."""
        self._stopped = True

    def _pause(self) -> None:
        self._alive = True
        self._scheduler.after(self._chance.expovariate(1 / self._pace), self._next)

    def _next(self) -> None:
        self._alive = not self._stopped
        known = list(self._truth.memories)
        if self._stopped:
            return
        if not known:
            self._pause()
            return
        self._count += 1
        self.busy += 1
        some = known[-NEW:] if self._chance.random() < 0.5 else known
        operation = f"{self._client.name}-change-{self._count}"
        arguments = {"memory_id": self._chance.choice(some), "operation_id": operation}
        if self._chance.random() < (DELETED_WHEN_FULL if self._full else DELETED):
            self._try("memory_delete", arguments)
        else:
            content = f"{word(self._client.name, 'c', self._count)} " + "y" * int(
                10 * 100 ** self._chance.random()
            )
            self._try("memory_edit", arguments | {"content": content})

    def _try(self, tool: str, arguments: Arguments) -> None:
        def told(result: Result | None) -> None:
            self._told(tool, arguments, result)

        if self._client.call(tool, arguments, told) is None:
            self._again(tool, arguments)

    def _again(self, tool: str, arguments: Arguments) -> None:
        self._scheduler.after(self._chance.uniform(0.05, 0.5), self._try, tool, arguments)

    def _told(self, tool: str, arguments: Arguments, result: Result | None) -> None:
        memory_id = arguments["memory_id"]
        code = "lost" if result is None else code_of(result, MISSING, FULL, USED)
        if code == MISSING:
            memory = self._truth.memories.get(memory_id)
            require(memory is None or memory.deleted, "not found, but there", memory_id)
        elif code == USED:
            forgotten = self._truth.stored.is_forgotten(arguments["operation_id"])
            require(forgotten, "an id was used before", arguments, result)
        elif code not in (None, FULL):
            self._again(tool, arguments)
            return
        self._full = code == FULL or (self._full and code is not None)
        if code is None:
            assert result is not None
            self._truth.changed(memory_id, result.get("revision"), self._scheduler.now)
        self.busy -= 1
        self._pause()
