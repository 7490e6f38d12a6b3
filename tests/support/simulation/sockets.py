"""The bus' listening socket: adapters that connect wait in its backlog until a gateway accepts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from tests.support.simulation import pipes
from tests.support.simulation.pipes import Delays, End
from tests.support.simulation.processes import Process
from tests.support.simulation.scheduler import Scheduler


class Listener:
    """Open as long as one of the processes that share it lives."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._delays = Delays(scheduler, "sockets")
        self._holders: list[Process] = []
        self._backlog: deque[End] = deque()
        self._acceptor: tuple[Process, Callable[[End], None]] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a connect succeeds."""
        return bool(self._holders)

    def share(self, process: Process) -> None:
        """One more process has it."""
        self._holders.append(process)

    def leave(self, process: Process) -> None:
        """One less; with the last one the backlog is reset."""
        if process in self._holders:
            self._holders.remove(process)
        if self._acceptor is not None and self._acceptor[0] is process:
            self._acceptor = None
        if not self._holders:
            for end in self._backlog:
                end.close()
            self._backlog.clear()

    def accept(self, process: Process, on_connection: Callable[[End], None]) -> None:
        """Begins to take connections."""
        self._acceptor = (process, on_connection)
        self._wake()

    def connect(self) -> End | None:
        """The caller's end of a new connection; None where nobody listens."""
        if not self.is_open:
            return None
        mine, theirs = pipes.connect(self._scheduler, self._delays)
        self._backlog.append(theirs)
        self._wake()
        return mine

    def _wake(self) -> None:
        if self._acceptor is not None:
            process, _ = self._acceptor
            process.later(self._delays(), self._take, process)

    def _take(self, process: Process) -> None:
        while self._acceptor is not None and self._acceptor[0] is process and self._backlog:
            self._acceptor[1](self._backlog.popleft())
