"""Pipes between processes: in order, late, and cut off with the process at either end.

What was written before a writer died arrives, and then the end. What nobody will read any more
is dropped, and the ends that travelled with it (`SCM_RIGHTS`) are closed. Payloads are bytes, or
lists where a protocol is modelled above its bytes (Redis); both may arrive in two pieces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tests.support.simulation.scheduler import Scheduler

if TYPE_CHECKING:
    from tests.support.simulation.processes import Process

SPLIT: Final = 0.03
"""How often a payload arrives in two pieces."""

OnData = Callable[[Any, "End | None"], None]
OnEnd = Callable[[], None]


class Delays:
    """How long things take: mostly next to nothing, now and then very long."""

    def __init__(self, scheduler: Scheduler, name: str) -> None:
        self._random = scheduler.chance(name).random

    def __call__(self) -> float:
        """Seconds."""
        kind, share = self._random(), self._random()
        if kind < 0.9:
            return 2e-5 + share * 3e-4
        return share * (0.005 if kind < 0.995 else 0.15)


class Pipe:
    """One direction. Without a reader, what arrives waits for one."""

    def __init__(self, scheduler: Scheduler, delays: Delays) -> None:
        self._scheduler = scheduler
        self._chance = scheduler.chance("pieces")
        self._delays = delays
        self._latest = 0.0
        self._reader: tuple[Process, OnData, OnEnd] | None = None
        self._kept: deque[tuple[Any, End | None]] = deque()
        self._reading = True
        self._writing = True
        self._ended = False
        self._under_way = 0

    # ---- the writer's side

    def write(self, payload: Any, right: End | None = None) -> None:
        """Says something, perhaps with an end to be given away."""
        if not (self._writing and self._reading):
            _close(right)
            return
        self._scheduler.trace.said(payload)
        if len(payload) > 1 and self._chance.random() < SPLIT:
            cut = self._chance.randrange(1, len(payload))
            self._later(self._arrive, payload[:cut], right)
            self._later(self._arrive, payload[cut:], None)
        else:
            self._later(self._arrive, payload, right)

    def end(self) -> None:
        """Says that nothing more comes."""
        if self._writing:
            self._writing = False
            self._later(self._arrive_end)

    def _later(self, action: Callable[..., None], *arguments: Any) -> None:
        self._under_way += 1
        self._latest = max(self._latest, self._scheduler.now + self._delays())
        self._scheduler.at(self._latest, action, *arguments)

    @property
    def is_drained(self) -> bool:
        """Whether everything that was written has arrived."""
        return not self._under_way

    # ---- the reader's side

    def read(self, process: Process, on_data: OnData, on_end: OnEnd) -> None:
        """Begins to read; a process that dies has `close_reading` called."""
        self._reader = (process, on_data, on_end)
        kept, self._kept = self._kept, deque()
        for payload, right in kept:
            process.post(on_data, payload, right)
        if self._ended:
            process.post(on_end)

    def close_reading(self) -> None:
        """Nobody reads this any more."""
        self._reading, self._reader = False, None
        for _, right in self._kept:
            _close(right)
        self._kept.clear()

    def _arrive(self, payload: Any, right: End | None) -> None:
        self._under_way -= 1
        if not self._reading:
            _close(right)
        elif self._reader is None:
            self._kept.append((payload, right))
        else:
            process, on_data, _ = self._reader
            process.post(on_data, payload, right)

    def _arrive_end(self) -> None:
        self._under_way -= 1
        self._ended = True
        if self._reader is not None:
            process, _, on_end = self._reader
            process.post(on_end)


class End:
    """One of the two ends of a connection."""

    def __init__(self, incoming: Pipe, outgoing: Pipe) -> None:
        self.incoming = incoming
        self.outgoing = outgoing
        self.peer: End | None = None

    def close(self) -> None:
        """What was written still arrives."""
        self.outgoing.end()
        self.incoming.close_reading()


def connect(scheduler: Scheduler, delays: Delays) -> tuple[End, End]:
    """The two ends of a new connection."""
    there, back = Pipe(scheduler, delays), Pipe(scheduler, delays)
    one, other = End(back, there), End(there, back)
    one.peer, other.peer = other, one
    return one, other


def _close(right: End | None) -> None:
    if right is not None:
        right.close()
