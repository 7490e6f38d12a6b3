"""The adapter's descriptors and its loop: bytes and timers in and out, nothing else.

Harnesses end their servers in every way there is: they close stdin, send SIGTERM or SIGINT, or die
(then the parent changes, and on Linux a descriptor tells it at once). None may leave us behind, and
none may cost a report: what was handed off is written to the daemon in the turn it was handed off.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
from collections import deque
from typing import Final, assert_never

from agentbus.adapter.core import AdapterCore
from agentbus.adapter.events import (
    Asked,
    Complain,
    Connect,
    DaemonClosed,
    DaemonConnected,
    DaemonData,
    DaemonStarted,
    DaemonUnreachable,
    Disconnect,
    Effect,
    Event,
    Exit,
    StartDaemon,
    StdinClosed,
    StdinData,
    WakeAt,
    Withdraw,
    Woke,
    WriteDaemon,
    WriteStdout,
)
from agentbus.adapter.output import Output
from agentbus.adapter.watched import Watched
from agentbus.client import start
from agentbus.client.connection import NOBODY, unreachable
from agentbus.client.start import POLL_SECONDS, Starting
from agentbus.client.trust import require_own
from agentbus.config import Configuration, load
from agentbus.errors import AgentbusError, Unavailable, UnsafePermissions
from agentbus.runtime.clock import SystemClock
from agentbus.runtime.paths import locate

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2

COMPLAINT_BYTES: Final = 4096
"""What a pipe that is writable takes without blocking, on every system."""

CHUNK: Final = 256 * 1024
MAX_UNREAD: Final = 16 * 1024 * 1024
"""Bytes that wait for a harness that does not read, before we stop reading from it."""

PAUSED_SECONDS: Final = 0.25
"""Between looks whether stdin has ended, while nothing is read from it."""

PARENT_SECONDS: Final = 1.0
"""Between looks at the parent, where no descriptor tells of its end."""

LAST_SECONDS: Final = 0.5
"""For writing what is left when the adapter ends."""


class Shell:
    """Runs one core."""

    def __init__(self, core: AdapterCore, config: str | None) -> None:
        self._core = core
        self._config = config
        self._clock = SystemClock()
        self._watched = Watched()
        self._events: deque[Event] = deque()
        self._output = Output(STDOUT)
        self._reading = True
        self._paused_until: float | None = None
        self._configuration: Configuration | None = None
        self._daemon: socket.socket | None = None
        self._to_daemon = bytearray()
        self._starting: Starting | None = None
        self._start_at: float | None = None
        self._wake_at: float | None = None
        self._parent = os.getppid()
        self._parent_at: float | None = None
        self._exit_code: int | None = None
        self._exit_by = 0.0

    def run(self) -> int:
        """Until the core ends it; the exit code."""
        was_blocking = os.get_blocking(STDOUT)
        os.set_blocking(STDOUT, False)
        signals = _Signals()
        self._watched.watch(signals.fd, select.POLLIN)
        watcher = self._watch_parent()
        try:
            self._perform(self._core.begin(self._clock.now()))
            self._handle()
            while not self._done():
                self._turn(signals, watcher)
        finally:
            os.set_blocking(STDOUT, was_blocking)
        return self._exit_code or 0

    def _done(self) -> bool:
        if self._exit_code is None:
            return False
        drained = not self._output.waiting and not (self._to_daemon and self._daemon)
        return drained or self._clock.now().monotonic >= self._exit_by

    # one turn

    def _turn(self, signals: _Signals, watcher: int | None) -> None:
        self._watch_changing()
        for fd in self._watched.wait(self._timeout()):
            if fd == STDIN:
                self._read_stdin()
            elif fd == signals.fd:
                signals.drain()
                self._events.append(Asked("signal"))
            elif fd == watcher:
                self._watched.forget(fd)
                self._events.append(Asked("orphan"))
            elif fd == STDOUT:
                self._events.extend(self._output.write())
            elif self._starting is not None and fd == self._starting.fd:
                self._read_start(self._starting)
            elif self._daemon is not None and fd == self._daemon.fileno():
                self._serve_daemon(self._daemon)
        self._look_at_clock()
        self._handle()

    def _handle(self) -> None:
        while self._events:
            event = self._events.popleft()
            self._perform(self._core.handle(event, self._clock.now()))

    def _look_at_clock(self) -> None:
        now = self._clock.now().monotonic
        if self._paused_until is not None and self._paused_until <= now:
            self._paused_until = now + PAUSED_SECONDS
            if has_hung_up(STDIN):
                self._end_stdin()
                self._events.append(StdinClosed())
        if self._wake_at is not None and self._wake_at <= now:
            self._wake_at = None
            self._events.append(Woke())
        if self._starting is not None and self._start_at is not None and self._start_at <= now:
            self._read_start(self._starting)
        if self._parent_at is not None and self._parent_at <= now:
            self._parent_at = now + PARENT_SECONDS
            if os.getppid() != self._parent:
                self._parent_at = None
                self._events.append(Asked("orphan"))

    def _timeout(self) -> float | None:
        exit_by = self._exit_by if self._exit_code is not None else None
        times = (self._wake_at, self._parent_at, self._paused_until, self._start_at, exit_by)
        soonest = min((time for time in times if time is not None), default=None)
        return None if soonest is None else max(0.0, soonest - self._clock.now().monotonic)

    def _watch_parent(self) -> int | None:
        """A descriptor that tells of the parent's end, where there are such."""
        try:
            watcher = os.pidfd_open(self._parent)
        except (AttributeError, OSError):
            self._parent_at = self._clock.now().monotonic + PARENT_SECONDS
            return None
        self._watched.watch(watcher, select.POLLIN)
        return watcher

    # effects

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case WriteStdout():
                    self._output.add(effect.data, effect.token)
                    self._events.extend(self._output.write())
                case Withdraw():
                    self._events.extend(self._output.withdraw(effect.token))
                case WriteDaemon():
                    self._write_daemon(effect.data)
                case Connect() | Disconnect() | StartDaemon():
                    self._reach(effect)
                case Complain():
                    _complain(effect.error)
                case WakeAt():
                    self._wake_at = effect.when
                case Exit():
                    self._exit_code = effect.code
                    self._exit_by = self._clock.now().monotonic + LAST_SECONDS
                    self._end_stdin()
                case _:
                    assert_never(effect)

    def _reach(self, effect: Connect | Disconnect | StartDaemon) -> None:
        match effect:
            case Connect():
                self._events.append(self._connect())
            case Disconnect():
                self._close_daemon()
            case StartDaemon():
                self._start()

    # the harness

    def _read_stdin(self) -> None:
        try:
            data = os.read(STDIN, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            if self._daemon is not None:  # what was said before this was written comes before it
                self._serve_daemon(self._daemon)
            self._events.append(StdinData(data))
        else:
            self._end_stdin()
            self._events.append(StdinClosed())

    def _end_stdin(self) -> None:
        self._reading = False
        self._paused_until = None
        self._watched.forget(STDIN)

    # the daemon

    def _connect(self) -> Event:
        self._close_daemon()
        try:
            configuration = self._configuration = load(self._config)
            path = locate(configuration.settings).socket
        except AgentbusError as error:
            return DaemonUnreachable(error)
        daemon = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        daemon.setblocking(False)
        try:
            daemon.connect(path)
            require_own(daemon, path)
        except NOBODY:
            daemon.close()
            return DaemonUnreachable()
        except OSError as error:
            daemon.close()
            return DaemonUnreachable(Unavailable(unreachable(path, error)))
        except UnsafePermissions as error:
            daemon.close()
            return DaemonUnreachable(error)
        self._daemon = daemon
        self._watched.watch(daemon.fileno(), select.POLLIN)
        return DaemonConnected(configuration)

    def _serve_daemon(self, daemon: socket.socket) -> None:
        self._flush_daemon()
        try:
            data = daemon.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._events.append(DaemonData(data))
        elif self._daemon is daemon:
            self._close_daemon()
            self._events.append(DaemonClosed())

    def _write_daemon(self, data: bytes) -> None:
        if self._daemon is not None:
            self._to_daemon += data
            self._flush_daemon()

    def _flush_daemon(self) -> None:
        """A broken connection is noticed when it is read to its end: it may hold answers."""
        if self._daemon is None or not self._to_daemon:
            return
        try:
            sent = self._daemon.send(self._to_daemon)
        except BlockingIOError:
            return
        except OSError:
            self._to_daemon.clear()
            return
        del self._to_daemon[:sent]

    def _close_daemon(self) -> None:
        if self._daemon is not None:
            self._watched.forget(self._daemon.fileno())
            self._daemon.close()
            self._daemon = None
        self._to_daemon.clear()

    def _start(self) -> None:
        assert self._configuration is not None
        if self._starting is not None:
            self._watched.forget(self._starting.fd)
            self._starting.close()
        self._starting = start.begin(self._configuration)
        self._read_start(self._starting)

    def _read_start(self, starting: Starting) -> None:
        """Goes on listening by its descriptor, or by the clock where it has none (yet)."""
        fd = starting.fd
        told = starting.read()
        self._start_at = None
        if told is not None:
            self._watched.forget(fd)
            self._starting = None
            self._events.append(DaemonStarted(told if isinstance(told, AgentbusError) else None))
        elif starting.fd >= 0:
            self._watched.watch(starting.fd, select.POLLIN)
        else:
            self._start_at = self._clock.now().monotonic + POLL_SECONDS

    # descriptors

    def _pause(self, paused: bool) -> None:
        """Reads nothing more while too much waits for the harness; its end is seen all the same."""
        if not paused:
            self._paused_until = None
        elif self._paused_until is None:
            self._paused_until = self._clock.now().monotonic + PAUSED_SECONDS
        self._watched.watch(STDIN, 0 if paused else select.POLLIN)

    def _watch_changing(self) -> None:
        """Outputs while something waits for them, stdin unless too much waits for the harness."""
        self._watched.watch(STDOUT, select.POLLOUT if self._output.waiting else 0)
        if self._reading:
            self._pause(self._output.waiting >= MAX_UNREAD)
        if self._daemon is not None:
            writes = select.POLLOUT if self._to_daemon else 0
            self._watched.watch(self._daemon.fileno(), select.POLLIN | writes)


def has_hung_up(fd: int) -> bool:
    """Whether nobody will write any more, also where something is still to be read."""
    ended = select.POLLHUP | getattr(select, "POLLRDHUP", 0)
    poll = select.poll()
    poll.register(fd, ended)
    return any(events & (ended | select.POLLERR) for _, events in poll.poll(0))


def _complain(error: AgentbusError) -> None:
    """A line on stderr where somebody reads it; a harness that never does must not block us."""
    if sys.stderr is None:  # was closed at start: its number may be something else's by now
        return
    line = f"agentbus mcp: {error.line}".encode(errors="replace")[: COMPLAINT_BYTES - 1] + b"\n"
    ready = select.poll()
    ready.register(STDERR, select.POLLOUT)
    with contextlib.suppress(OSError):
        if any(events & select.POLLOUT for _, events in ready.poll(0)):
            os.write(STDERR, line)


class _Signals:
    """Turns signals into something to read."""

    def __init__(self) -> None:
        self.fd, self._write_fd = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._write_fd, False)
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, _noted)

    def drain(self) -> None:
        """Forgets what came."""
        os.read(self.fd, 64)


def _noted(*_: object) -> None:
    """The wakeup descriptor has it."""
