"""An adapter as a process: the real core, in a shell that does what `adapter.shell` does."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, assert_never

from agentbus import __version__
from agentbus.adapter import events as ev
from agentbus.adapter.core import AdapterCore, Launch
from agentbus.adapter.events import (
    DaemonClosed,
    DaemonConnected,
    DaemonData,
    DaemonStarted,
    DaemonUnreachable,
    Flushed,
    StdinClosed,
    StdinData,
    Withdrawn,
)
from agentbus.adapter.identity import Given, Project
from agentbus.config import Configuration
from agentbus.errors import AgentbusError
from agentbus.wire.events import Exit, WakeAt, Woke
from tests.support.simulation import pipes
from tests.support.simulation.machine import Machine
from tests.support.simulation.pipes import Delays, End
from tests.support.simulation.processes import Process
from tests.support.simulation.scheduler import Timer

LAST_SECONDS: Final = 0.5
BEGUN: Final = 0.3
"""How often a harness that does not read leaves a line half written."""


class Harness(Protocol):
    """What the other side of stdin and stdout is told."""

    reads: bool

    def handed(self, adapter: Adapter, line: bytes, *, begun: bool) -> None:
        """The last byte of a line is out: it was delivered at this moment. Its first byte may have
        been out long before."""

    def said(self, adapter: Adapter, line: bytes) -> None:
        """The line has been read, a little later."""


class Adapter(Process):
    """One `agentbus mcp`, with fixed application and session."""

    def __init__(self, machine: Machine, harness: Harness, session: str) -> None:
        super().__init__(machine.scheduler, f"adapter-{session}", machine.pid())
        self._machine = machine
        self._harness = harness
        self._events: deque[ev.Event] = deque()
        self._handling = False
        self._out: deque[tuple[bytes, int]] = deque()
        self._begun = False
        self.connected_at = 0.0
        """Since when it has its connection to the daemon."""
        self._daemon: End | None = None
        self._timer: Timer | None = None
        self._code: int | None = None
        delays = Delays(machine.scheduler, "stdio")
        self.stdin, mine = pipes.connect(machine.scheduler, delays)
        """The harness' end."""
        self._stdio = mine
        settings = machine.settings
        self._configuration = Configuration(settings, "/sim/config.json", exists=True)
        given = Given(machine.tokens.token(), session, "sim", session)
        launch = Launch(given, Project("/sim"), settings, __version__)
        self._core = AdapterCore(launch, machine.tokens)
        self.later(machine.scheduler.chance("forks").uniform(0.02, 0.2), self._begin)

    @property
    def connected(self) -> bool:
        """Whether it has a connection to the daemon."""
        return self._daemon is not None

    @property
    def attentive_since(self) -> float:
        """Since when it was connected to the same daemon, and never halted."""
        return max(self.connected_at, self._halted_until)

    def _begin(self) -> None:
        self._carry_out(self._core.begin(self.scheduler.instant()))
        self._handle()
        self._stdio.incoming.read(
            self, lambda data, _: self._happened(StdinData(data)), self._stdin_closed
        )

    def _happened(self, event: ev.Event) -> None:
        self._events.append(event)
        if not self._handling:
            self._handle()

    def _handle(self) -> None:
        self._handling = True
        while self._events:
            event = self._events.popleft()
            self.scheduler.handled(self.label, event)
            self._carry_out(self._core.handle(event, self.scheduler.instant()))
        self._handling = False
        self._leave()

    def _carry_out(self, effects: list[ev.Effect]) -> None:
        for effect in effects:
            self._perform(effect)

    def _perform(self, effect: ev.Effect) -> None:  # noqa: C901 - one flat match
        match effect:
            case ev.WriteStdout(data, token):
                self._out.append((data, token))
                self._write_stdout()
            case ev.Withdraw(token):
                self._withdraw(token)
            case ev.WriteDaemon(data):
                if self._daemon is not None:
                    self.write(self._daemon.outgoing, data)
            case ev.Connect():
                self._events.append(self._connect())
            case ev.Disconnect():
                self._close_daemon()
            case ev.StartDaemon():
                self._machine.start_daemon(self._started)
            case ev.Complain(error):
                text = f"{self.label} complains of {error.code}"
                self.scheduler.trace.note(self.scheduler.now, text)
            case WakeAt(when):
                self._wake_at(when)
            case Exit(code):
                self._code = code
                self._stdio.incoming.close_reading()
                self.later(LAST_SECONDS, self.end, code)
            case _:
                assert_never(effect)

    def _leave(self) -> None:
        if self._code is not None and not self._out:
            self.end(self._code)

    def _wake_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancelled = True
        self._timer = self.scheduler.at(when, self.post, self._happened, Woke())

    # ---- the harness

    def _stdin_closed(self) -> None:
        self._happened(StdinClosed())

    def harness_reads(self) -> None:
        """There is room again."""
        self.post(self._write_more)

    def _write_more(self) -> None:
        self._write_stdout()
        if not self._handling:
            self._handle()

    def _write_stdout(self) -> None:
        while self._out and self._harness.reads:
            line, token = self._out.popleft()
            begun, self._begun = self._begun, False
            self._harness.handed(self, line, begun=begun)
            self.scheduler.trace.said(line)
            delay = 1e-4 * self.scheduler.chance("stdio").random()
            self.scheduler.after(delay, self._harness.said, self, line)
            self._events.append(Flushed(token))
        if self._out and not self._begun:
            self._begun = self.scheduler.chance("stdio").random() < BEGUN

    def _withdraw(self, token: int) -> None:
        for index, (_, each) in enumerate(self._out):
            if each == token and (index > 0 or not self._begun):
                del self._out[index]
                self._events.append(Withdrawn(token))
                return

    # ---- the daemon

    def _connect(self) -> ev.Event:
        self._close_daemon()
        listener = self._machine.listener
        end = None if listener is None else listener.connect()
        if end is None:
            return DaemonUnreachable()
        self._daemon = end
        self.connected_at = self.scheduler.now
        end.incoming.read(
            self, lambda data, _: self._from_daemon(end, data), lambda: self._daemon_closed(end)
        )
        return DaemonConnected(self._configuration)

    def _from_daemon(self, end: End, data: bytes) -> None:
        if end is self._daemon:
            self._happened(DaemonData(data))

    def _daemon_closed(self, end: End) -> None:
        if end is self._daemon:
            self._close_daemon()
            self._happened(DaemonClosed())

    def _close_daemon(self) -> None:
        end, self._daemon = self._daemon, None
        if end is not None:
            end.close()

    def _started(self, error: AgentbusError | None) -> None:
        self.later(1e-4, self._happened, DaemonStarted(error))

    def died(self) -> None:
        """Its descriptors are closed."""
        self._close_daemon()
        self._stdio.close()


Make = Callable[[Harness, str], Adapter]
