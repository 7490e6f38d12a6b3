"""The supervisor's shell: polls, reaps, forks and kills; what to do is `core`'s to say."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import sys
from collections import deque
from collections.abc import Sequence
from typing import Final, assert_never

import msgspec

from agentbus.config import Configuration
from agentbus.errors import AgentbusError, InternalError, StorageFailed, Unavailable
from agentbus.runtime import exits, failures, faults, logs, platform, refusals
from agentbus.runtime.clock import SystemClock
from agentbus.runtime.faults import Fault, Point
from agentbus.runtime.owners import Owner
from agentbus.runtime.paths import Paths, locate, prepare
from agentbus.runtime.tokens import SystemTokens
from agentbus.supervisor import child, listener, locks
from agentbus.supervisor import events as ev
from agentbus.supervisor.core import Core, RedisFacts
from agentbus.supervisor.handover import End
from agentbus.supervisor.links import Control, Ends, Silent, make_pair
from agentbus.supervisor.place import Displaced, Mark, Place, mark
from agentbus.supervisor.redis_discovery import Server, discover
from agentbus.supervisor.redis_process import Held, RedisProcess
from agentbus.supervisor.report import Report
from agentbus.supervisor.services import REDIS, SERVICES, Service, ends
from agentbus.supervisor.wiping import finish, wipe
from agentbus.wire.error_codes import from_failure, to_data
from agentbus.wire.events import Exit, WakeAt, Woke

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_log = logs.get(__name__)


def run_daemon(
    configuration: Configuration,
    report_fds: Sequence[int] = (),
    services: Sequence[Service] = SERVICES,
) -> int:
    """Runs the daemon until it is stopped; the exit code.

    Where another daemon serves this runtime directory, reports that one as ready and returns.
    Whatever keeps it from serving goes to the report's descriptors and, as one line, to stderr.
    """
    report = Report(*report_fds)
    try:
        return _start(configuration, report, services)
    except AgentbusError as error:
        return _failed(report, error)
    except OSError as error:
        _log.crash("crashed", error, during="start")
        return _failed(report, refusals.told(error, "the daemon cannot run"))
    except Exception as error:  # noqa: BLE001 - whoever waits has to be told
        _log.crash("crashed", error, during="start")
        return _failed(report, InternalError(f"the daemon failed: {error!r}"))
    finally:
        report.close()


def _start(configuration: Configuration, report: Report, services: Sequence[Service]) -> int:
    os.umask(0o077)
    fault = faults.requested("supervisor")  # refused before anything is touched
    paths = locate(configuration.settings)
    prepare(paths)
    lock = locks.take_daemon(paths)
    if isinstance(lock, Owner):
        return _follow(report, lock)
    owner = Owner(os.getpid(), paths.socket, paths.runtime_directory)
    lock.write(owner)
    data_lock = locks.take_data(paths)
    if isinstance(data_lock, Owner):
        return _follow(report, data_lock)
    data_lock.write(owner)
    logs.configure("supervisor", paths, configuration.settings)
    platform.set_title("agentbus: supervisor")
    _log.info(failures.STARTS, descriptors=listener.raise_descriptor_limit())
    left = finish(paths)
    if left:
        raise StorageFailed(f"an interrupted reset cannot be finished: {left}")
    server = discover(configuration.settings)
    _log.info("redis_found", executable=server.executable, version=server.version)
    place = Place(paths, lock, data_lock)
    shell = Supervisor(configuration, paths, services, server, place, report, fault)
    try:
        code = shell.run()
        if report.awaited:
            report.failure(to_data(Unavailable("the daemon was stopped before it was ready")))
        return code
    finally:
        shell.close()
        place.leave()
        _log.info("daemon_ended")


def _follow(report: Report, owner: Owner) -> int:
    """Somebody who started it by hand is told as well, or it would end without a word."""
    if not report.awaited:
        sys.stderr.write(f"agentbus is already running (process {owner.pid})\n")
    report.ready(owner.pid)
    return exits.OK


def _failed(report: Report, error: AgentbusError) -> int:
    _log.error(failures.FAILED, code=error.code, text=error.message)
    report.failure(to_data(error))
    sys.stderr.write(f"agentbus: {error.code}: {error.message}\n")
    return exits.FAILED


class Supervisor:
    """Carries out the effects of the core and feeds it what happens."""

    def __init__(
        self,
        configuration: Configuration,
        paths: Paths,
        services: Sequence[Service],
        server: Server,
        place: Place,
        report: Report,
        fault: Fault = faults.no_fault,
    ) -> None:
        self._configuration = configuration
        self._paths = paths
        self._services = {service.name: service for service in services}
        self._place = place
        self._report = report
        self._fault = fault
        self._clock = SystemClock()
        self._redis = RedisProcess(server, paths, SystemTokens())
        self._redis_socket = ""
        self._redis_mark: Mark | None = None
        self._ends = Ends(ends(services))
        self._controls: dict[str, Control] = {}
        self._pids: dict[str, int] = {}
        self._selector = selectors.DefaultSelector()
        self._signals, self._signalled = socket.socketpair()
        self._wake_at = 0.0
        self._code: int | None = None
        self._core = Core(
            services,
            os.getpid(),
            RedisFacts(server.executable, server.version),
            {name: paths.log(name) for name in [*self._services, REDIS]},
        )

    def run(self) -> int:
        """Until the core says so."""
        self._watch_signals()
        self._handle(ev.Started())
        while self._code is None:
            timeout = max(0.0, self._wake_at - self._clock.now().monotonic)
            for key, _ in self._selector.select(timeout):
                if key.data is None:
                    self._read_signals()
                else:
                    self._serve(key.data)
            if self._clock.now().monotonic >= self._wake_at:
                self._reap()  # a signal may have been lost
                self._handle(Woke())
        return self._code

    def close(self) -> None:
        """Kills and reaps what is left, which is nothing after an orderly end."""
        for pid in self._pids.values():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        self._abandon()

    # ---- the core

    def _handle(self, event: ev.Event) -> None:
        """Effects are carried out in the order in which the core asked for them; answers to them go
        to the core at once, before any other event."""
        effects = deque(self._core.handle(event, self._clock.now()))
        while effects and self._code is None:
            answer = self._perform(effects.popleft())
            if answer is not None:
                effects.extend(self._core.handle(answer, self._clock.now()))

    def _perform(self, effect: ev.Effect) -> ev.Event | None:  # noqa: C901 - one flat match
        match effect:
            case ev.Fork(name, given):
                return self._fork(self._services[name], given)
            case ev.StartRedis(keep_snapshot):
                return self._start_redis(keep_snapshot=keep_snapshot)
            case ev.ProbeRedis(pid):
                return self._probe_redis(pid)
            case ev.Observe():
                return self._observe()
            case ev.Tell(name, message):
                self._tell(name, message)
            case ev.HandEnd(end):
                self._hand(end)
            case ev.DropEnd(end):
                self._ends.drop(end)
            case ev.Kill(name, pid, gently):
                self._kill(name, pid, signal.SIGTERM if gently else signal.SIGKILL)
            case ev.Wipe():
                return ev.Wiped(wipe(self._paths))
            case ev.CloseListener():
                self._place.refuse()
            case ev.ReportReady():
                self._report.ready(os.getpid())
            case ev.ReportFailure(failure):
                _failed(self._report, from_failure(failure))
            case ev.Note(level, action, fields):
                getattr(_log, level)(action, **fields)
            case WakeAt(when):
                self._wake_at = when
            case Exit(code):
                self._code = code
            case _:
                assert_never(effect)
        return None

    # ---- processes

    def _fork(self, service: Service, given: list[End]) -> ev.Event:
        mine, theirs = make_pair()
        sockets = {end.link: self._ends.take(end) for end in given}
        inheritance = child.Inheritance(
            theirs, sockets, self._place.listening if service.listens else None, self._place.locks
        )

        def abandon() -> None:
            mine.close()
            self._abandon()
            if not service.listens:
                self._place.listening.close()

        try:
            pid = child.fork(service, self._configuration, self._paths, inheritance, abandon)
        except OSError as error:
            mine.close()
            return ev.ForkFailed(service.name, _not_started(error))
        finally:
            theirs.close()
            for sock in sockets.values():
                sock.close()
        self._pids[service.name] = pid
        self._controls[service.name] = Control(mine)
        self._selector.register(mine, selectors.EVENT_READ, service.name)
        return ev.Forked(service.name, pid)

    def _abandon(self) -> None:
        """Closes what belongs to the supervisor; in a child, what it must not keep.

        The selector is only closed: to unregister from a shared epoll would unregister the parent.
        """
        self._selector.close()
        self._signals.close()
        self._signalled.close()
        self._report.close()
        self._ends.close()
        for control in self._controls.values():
            control.close()

    def _start_redis(self, *, keep_snapshot: bool) -> ev.Event:
        try:
            pid, self._redis_socket = self._redis.start(keep_snapshot=keep_snapshot)
        except Held as held:
            return ev.RedisHeld(held.pid)
        except OSError as error:
            return ev.ForkFailed(REDIS, _not_started(error))
        except AgentbusError as error:
            return ev.ForkFailed(REDIS, error.message)
        self._pids[REDIS] = pid
        return ev.Forked(REDIS, pid, self._redis_socket)

    def _probe_redis(self, pid: int) -> ev.Event | None:
        self._redis_mark = self._redis.listening(self._redis_socket)
        return None if self._redis_mark is None else ev.RedisListens(pid)

    def _observe(self) -> ev.Event:
        states = {name: platform.process_state(pid) for name, pid in self._pids.items()}
        redis_lost = mark(self._redis_socket) != self._redis_mark
        try:
            listening = self._place.mend()
        except Displaced as displaced:
            return ev.Observed(states, redis_lost, str(displaced))
        if listening is not None:
            self._listen(listening)
        return ev.Observed(states, redis_lost)

    def _listen(self, listening: socket.socket) -> None:
        for name, control in self._controls.items():
            if self._services[name].listens:
                control.listen(listening)
                self._watch(name)

    def _kill(self, name: str, pid: int, number: signal.Signals) -> None:
        if self._pids.get(name) == pid:  # not reaped: the pid is still this process
            os.kill(pid, number)

    def _reap(self) -> None:
        for name, pid in list(self._pids.items()):
            reaped, status = os.waitpid(pid, os.WNOHANG)
            if reaped == pid:
                self._last_words(name)
                del self._pids[name]
                if name == REDIS:
                    self._redis.end_group(pid)
                self._handle(ev.Died(name, pid, os.waitstatus_to_exitcode(status)))

    def _last_words(self, name: str) -> None:
        control = self._controls.get(name)
        if control is not None:
            while self._serve(name):
                pass
            self._forget(name)

    # ---- control links

    def _serve(self, name: str) -> bool:
        """Reads what a child has said; whether there was anything."""
        control = self._controls.get(name)
        if control is None:
            return False
        control.flush()
        try:
            messages = control.read()
        except Silent:
            self._forget(name)
            self._handle(ev.FellSilent(name, self._pids[name]))
            return False
        for message in messages:
            self._handle(ev.Said(name, message))
        self._watch(name)
        return bool(messages)

    def _tell(self, name: str, message: msgspec.Struct) -> None:
        control = self._controls.get(name)
        if control is not None:
            control.tell(message)
            self._watch(name)

    def _hand(self, end: End) -> None:
        control = self._controls.get(end.owner)
        if control is None:
            self._ends.drop(end)
        else:
            self._fault(Point.HANDING)
            control.hand(end.link, end.number, self._ends.take(end))
            self._fault(Point.HANDED)
            self._watch(end.owner)

    def _watch(self, name: str) -> None:
        control = self._controls.get(name)
        if control is not None:
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if control.waiting else 0)
            self._selector.modify(control.socket, wanted, name)

    def _forget(self, name: str) -> None:
        control = self._controls.pop(name, None)
        if control is not None:
            self._selector.unregister(control.socket)
            control.close()

    # ---- signals

    def _watch_signals(self) -> None:
        """Handlers do nothing: the number arrives as a byte at the wakeup descriptor."""
        for sock in (self._signals, self._signalled):
            sock.setblocking(False)
        signal.set_wakeup_fd(self._signalled.fileno(), warn_on_full_buffer=False)
        for number in (*STOP_SIGNALS, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        self._selector.register(self._signals, selectors.EVENT_READ, None)

    def _read_signals(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for number in self._signals.recv(4096):
                if number in STOP_SIGNALS:
                    self._handle(ev.StopSignal(number))
        self._reap()


def _not_started(error: OSError) -> str:
    return f"no process can be started ({error.strerror})"
