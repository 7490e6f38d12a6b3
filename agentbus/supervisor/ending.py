"""How the processes are brought down, one after the other: for good, or to start anew.

                 reset asked                stop asked, or failed
    running ────────────────▶ resetting ──────────────▶ stopping ──all gone──▶ ended
      ▲  └──────────────────────────│─────────────────────▲
      └───────── data removed ──────┘

Services go from the last row of the table to the first, then Redis; each is asked first and killed
after its grace. A stop that overtakes a reset still removes the data.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from agentbus.runtime import exits
from agentbus.supervisor import events as ev
from agentbus.supervisor.outbox import Outbox
from agentbus.supervisor.process import Process
from agentbus.supervisor.roster import Roster
from agentbus.supervisor.services import GRACE
from agentbus.supervisor.states import State
from agentbus.wire.error_codes import Failure
from agentbus.wire.events import Exit
from agentbus.wire.links import Stop


class Phase(Enum):
    """Of the daemon as a whole."""

    RUNNING = "running"
    RESETTING = "resetting"
    STOPPING = "stopping"
    ENDED = "ended"


TURNS: Final[dict[Phase, frozenset[Phase]]] = {
    Phase.RUNNING: frozenset({Phase.RESETTING, Phase.STOPPING}),
    Phase.RESETTING: frozenset({Phase.RUNNING, Phase.STOPPING}),
    Phase.STOPPING: frozenset({Phase.ENDED}),
    Phase.ENDED: frozenset(),
}


class Ending:
    """The phase, and what is asked of processes in it."""

    def __init__(self, roster: Roster, outbox: Outbox) -> None:
        self._roster = roster
        self._outbox = outbox
        self._refusing = False
        self._wipe_due = False
        self.phase = Phase.RUNNING
        self.failure: Failure | None = None

    @property
    def running(self) -> bool:
        """Whether processes are started, and started again."""
        return self.phase is Phase.RUNNING

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do."""
        return self.phase is Phase.ENDED

    def fail(self, failure: Failure, now: float) -> None:
        """Stops, and says why; the first failure is the one that is told."""
        if self.failure is None and self.phase in (Phase.RUNNING, Phase.RESETTING):
            self.failure = failure
            self._outbox.add(ev.ReportFailure(failure))
        self.begin(Phase.STOPPING, now)

    def begin(self, phase: Phase, now: float) -> None:
        """Turns to `phase`, unless that is where we are or have been."""
        if phase not in TURNS[self.phase]:
            return
        self.phase = phase
        self._wipe_due = self._wipe_due or phase is Phase.RESETTING
        for process in self._roster:
            process.due = None
        self.step(now)

    def step(self, now: float) -> None:
        """Asks the next process to end, when none is on its way; at last, the end itself."""
        if self.phase is Phase.STOPPING and not self._refusing and not self._roster.listening():
            self._refusing = True
            self._outbox.add(ev.CloseListener())
        process = self._roster.next_to_stop()
        if process is None:
            self._all_gone()
        elif process.serving:
            self.ask(process, now)

    def wiped(self, failure: Failure | None, now: float) -> bool:
        """The data are removed, or not: whether everything is to be started anew."""
        self._wipe_due = False
        if failure is not None:
            self.fail(failure, now)
        elif self.phase is Phase.RESETTING:
            self.phase = Phase.RUNNING
            return True
        if self.phase is Phase.STOPPING:
            self._all_gone()
        return False

    def ask(self, process: Process, now: float) -> None:
        """Asks one process to end; it is killed when its grace has passed."""
        process.move(State.STOPPING)
        if process is self._roster.redis:
            process.deadline = now + GRACE
            self._outbox.add(ev.Kill(process.name, process.pid, gently=True))
            return
        service = self._roster.services[process.name]
        process.deadline = now + service.grace
        kept = service.saves_redis and not self._wipe_due
        snapshot = kept and self._roster.redis.state is State.READY
        self._outbox.add(ev.Tell(process.name, Stop(snapshot=snapshot)))

    def _all_gone(self) -> None:
        if self._wipe_due:
            self._outbox.add(ev.Wipe())
        elif self.phase is Phase.STOPPING:
            self.phase = Phase.ENDED
            self._outbox.add(Exit(exits.FAILED if self.failure else exits.OK))
