"""The supervisor's decisions: events in, effects out, no clock, no process, no socket.

    start      every service and Redis at once; ready when all needed services are
    death      peers are handed fresh ends, the process comes back after `restart`'s delay;
               given up: the daemon stops with an error
    liveness   every second the kernel is asked who is stopped and where the sockets are, every two
               seconds all are pinged
    stop       services from the last row of the table to the first, then Redis, then the end;
               each asked first and killed after its grace
    reset      the same, but the listener stays; then the data are removed and all starts again

Answers to effects (`Forked`, `ForkFailed`, `RedisHeld`) are handled before any other event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, assert_never

import msgspec

from agentbus.errors import (
    AgentbusError,
    InternalError,
    StorageFailed,
    Unavailable,
)
from agentbus.model.ports import Instant
from agentbus.supervisor import events as ev
from agentbus.supervisor.ending import Ending, Phase
from agentbus.supervisor.handover import Handover
from agentbus.supervisor.liveness import Liveness
from agentbus.supervisor.outbox import Outbox
from agentbus.supervisor.process import Process
from agentbus.supervisor.redis_care import HELD_LIMIT, RedisCare
from agentbus.supervisor.roster import Roster
from agentbus.supervisor.services import Service, ends
from agentbus.supervisor.states import State
from agentbus.wire.error_codes import Failure, to_failure
from agentbus.wire.events import WakeAt, Woke
from agentbus.wire.links import (
    Failing,
    FromChild,
    Hindered,
    Ping,
    Pong,
    ProcessInfo,
    Ready,
    RedisDown,
    RedisUnfit,
    RedisUp,
    ResetRequested,
    SearchBackend,
    StopRequested,
    Taken,
    WriterHindered,
)

PROBE: Final = 0.01
"""Seconds between looks at a Redis that does not listen yet, at first."""

LISTEN_LIMIT: Final = 30.0
"""Seconds in which Redis must listen; it does so before it loads its snapshot."""

HELD_RETRY: Final = 0.1
SILENT_GRACE: Final = 1.0
"""Seconds from the end of a child's control link to the end of the child."""


class RedisFacts(msgspec.Struct, frozen=True):
    """What `RedisUp` says of the server besides its pid and socket."""

    executable: str
    version: str


class Core:
    """`logs` are the log files by process name, for errors."""

    def __init__(
        self, services: Sequence[Service], pid: int, redis: RedisFacts, logs: Mapping[str, str]
    ) -> None:
        self._roster = Roster(services)
        self._redis = self._roster.redis
        self._care = RedisCare()
        self._liveness = Liveness(self._roster)
        self._outbox = Outbox(self._roster)
        self._handover = Handover(ends(services))
        self._pid = pid
        self._facts = redis
        self._logs = logs
        self._now = Instant(0.0, 0.0)
        self._started_at = 0.0
        self._ready = False
        self._end = Ending(self._roster, self._outbox)

    def handle(self, event: ev.Event, now: Instant) -> list[ev.Effect]:
        """The one way in."""
        self._now = now
        self._dispatch(event)
        self._outbox.tell_processes(ProcessInfo("supervisor", self._pid, self._started_at, 0))
        if not self._end.ended:
            self._outbox.add(WakeAt(self._next_wake()))
        return self._outbox.take()

    def _dispatch(self, event: ev.Event) -> None:  # noqa: C901 - one flat match
        match event:
            case ev.Started():
                self._start()
            case ev.Forked(name, pid, socket_path):
                self._forked(self._roster[name], pid, socket_path)
            case ev.ForkFailed(name, reason):
                self._outbox.note("warn", "start_failed", name=name, reason=reason)
                self._lost(self._roster[name], was_ready=False, how=reason)
            case ev.RedisHeld(pid):
                self._redis_held(pid)
            case ev.RedisListens(pid):
                self._redis_listens(pid)
            case ev.Died(name, pid, status):
                self._died(self._roster[name], pid, status)
            case ev.Said(name, message):
                self._said(self._roster[name], message)
            case ev.FellSilent(name, pid):
                self._fell_silent(self._roster[name], pid)
            case ev.Observed():
                self._observed(event)
            case ev.Wiped(reason):
                self._wiped(reason)
            case ev.StopSignal(number):
                self._outbox.note("info", "stop_asked", signal=number)
                self._begin(Phase.STOPPING)
            case Woke():
                self._woke()
            case _:
                assert_never(event)

    # ---- starting

    def _start(self) -> None:
        self._started_at = self._now.wall
        self._liveness.start(self._now.monotonic)
        self._launch_all()

    def _launch_all(self) -> None:
        for process in self._roster:
            if self._roster.wanted(process):
                self._launch(process)

    def _launch(self, process: Process) -> None:
        process.due = None
        if process is self._redis:
            self._outbox.add(ev.StartRedis(self._care.keep_snapshot))
            return
        serving = self._roster.serving()
        given, dropped = self._handover.fork(process.name, serving)
        self._outbox.drop(dropped)
        self._outbox.add(ev.Fork(process.name, given))
        for name in sorted(serving):
            self._hand_next(name)

    def _hand_next(self, name: str) -> None:
        end = self._handover.due(name)
        if end is not None:
            self._outbox.add(ev.HandEnd(end))

    def _forked(self, process: Process, pid: int, socket_path: str) -> None:
        process.forked(pid, socket_path, self._now)
        self._outbox.note("info", "started", name=process.name, child=pid)
        if not self._end.running:
            self._condemn(process, "stopping")
        elif process is self._redis:
            self._care.started()
            process.deadline = self._now.monotonic + LISTEN_LIMIT
        else:
            self._tell_newcomer(process)

    def _tell_newcomer(self, process: Process) -> None:
        """What the others were told before it came; the list of processes changes with it."""
        service = self._roster.services[process.name]
        if service.told_redis and self._redis.state is State.READY:
            self._outbox.tell(process, self._redis_up())
        if service.told_processes:
            for other in self._roster:
                if other.hindrance is not None:
                    self._outbox.tell(process, WriterHindered(other.hindrance))

    def _became_ready(self, process: Process) -> None:
        if process.state is not State.STARTING:
            return
        process.move(State.READY)
        process.hindrance = None
        self._outbox.note("info", "ready", name=process.name)
        if not self._ready and self._roster.complete():
            self._ready = True
            self._outbox.add(ev.ReportReady())

    # ---- Redis

    def _redis_held(self, pid: int) -> None:
        seconds = self._care.held(self._now.monotonic)
        if seconds == 0:
            self._outbox.note("warn", "redis_held", child=pid)
        if seconds > HELD_LIMIT:
            self._fail(
                InternalError(
                    f"a Redis of an earlier daemon (pid {pid}) does not end; end it and start again"
                )
            )
        elif self._end.running:
            self._redis.due = self._now.monotonic + HELD_RETRY

    def _redis_listens(self, pid: int) -> None:
        if self._redis.pid == pid and self._redis.state is State.STARTING:
            self._redis.deadline = None
            self._became_ready(self._redis)
            self._outbox.tell_redis(self._redis_up())

    def _redis_up(self) -> RedisUp:
        redis = self._redis
        return RedisUp(redis.socket_path, redis.pid, self._facts.executable, self._facts.version)

    def _redis_unfit(self, pid: int, failure: Failure, *, fatal: bool) -> None:
        if self._redis.pid != pid or not self._redis.serving:
            return
        self._outbox.note(
            "warn", "redis_unfit", code=failure.code, text=failure.message, fatal=fatal
        )
        if fatal:
            self._fail_with(failure)
            return
        self._care.unfit(failure)
        self._condemn(self._redis, "unfit")

    def _observed(self, seen: ev.Observed) -> None:
        for name, state in seen.states.items():
            self._roster[name].seen(state, self._now.monotonic)
        if seen.redis_lost and self._redis.state is State.READY:
            self._condemn(self._redis, "unreachable")
        if seen.displaced:
            self._fail(Unavailable(seen.displaced))

    # ---- what children say

    def _said(self, process: Process, message: FromChild) -> None:  # noqa: C901 - one flat match
        process.heard(self._now.monotonic)
        match message:
            case Ready():
                self._became_ready(process)
            case Pong():
                pass
            case Taken(link, number):
                if self._handover.taken(process.name, link, number):
                    self._hand_next(process.name)
            case StopRequested():
                self._outbox.note("info", "stop_asked", name=process.name)
                self._begin(Phase.STOPPING)
            case ResetRequested():
                self._outbox.note("warn", "reset_asked", name=process.name)
                self._begin(Phase.RESETTING)
            case SearchBackend(indexer):
                self._search_backend(indexer=indexer)
            case RedisUnfit(pid, fatal, failure):
                self._redis_unfit(pid, failure, fatal=fatal)
            case Failing(failure):
                self._outbox.note("error", "child_failing", name=process.name, code=failure.code)
                self._fail_with(failure)
            case Hindered():
                self._hindered(process, message.failure)
            case _:
                assert_never(message)

    def _hindered(self, process: Process, failure: Failure) -> None:
        """A start that cannot be is told at once, the next one may have more luck. A daemon that
        served goes on with what it can do."""
        self._outbox.note("warn", "child_hindered", name=process.name, code=failure.code)
        if self._ready:
            process.hindrance = failure
            self._outbox.tell_managers(WriterHindered(failure))
        else:
            self._fail_with(failure)

    def _fell_silent(self, process: Process, pid: int) -> None:
        if process.pid == pid and process.alive and process.state is not State.CONDEMNED:
            soon = self._now.monotonic + SILENT_GRACE
            process.deadline = min(process.deadline or soon, soon)

    # ---- dying

    def _died(self, process: Process, pid: int, status: int) -> None:
        if process.pid != pid or not process.alive:
            return
        expected = not self._end.running and status == 0
        self._outbox.note(
            "info" if expected else "warn",
            "died",
            name=process.name,
            child=pid,
            status=status,
            state=process.state.value,
        )
        was_ready = process.state is not State.STARTING
        condemned = process.state is State.CONDEMNED
        process.move(State.ABSENT)
        process.deadline = None
        if process is self._redis:
            self._care.ended(status, condemned=condemned)
            self._outbox.tell_redis(RedisDown(f"the server ended with {_spoken(status)}"))
        self._lost(process, was_ready=was_ready, how=_spoken(status))

    def _lost(self, process: Process, *, was_ready: bool, how: str) -> None:
        """A process is not there; decides what follows."""
        if process is not self._redis:
            self._outbox.drop(self._handover.died(process.name))
        if not self._end.running:
            self._end.step(self._now.monotonic)
            return
        if not self._roster.wanted(process):
            return
        delay = process.deaths.add(self._now.monotonic, was_ready=was_ready)
        if delay is None:
            self._give_up(process, how)
        elif delay == 0:
            self._launch(process)
        else:
            process.due = self._now.monotonic + delay

    def _give_up(self, process: Process, how: str) -> None:
        log = self._logs.get(process.name, "in the data directory")
        text = f"{process.name} keeps dying, the last time with {how}; its log is {log}, the "
        text += "supervisor's is beside it"
        if process is self._redis:
            self._fail_with(self._care.verdict(text))
        elif self._roster.services[process.name].needed:
            self._fail(InternalError(text))
        else:
            process.given_up = True
            self._outbox.note("error", "given_up", name=process.name, how=how)

    def _condemn(self, process: Process, why: str) -> None:
        process.move(State.CONDEMNED)
        process.deadline = None
        self._outbox.note("warn", "killed", name=process.name, child=process.pid, why=why)
        self._outbox.add(ev.Kill(process.name, process.pid))

    # ---- stopping

    def _fail(self, error: AgentbusError) -> None:
        self._fail_with(to_failure(error))

    def _fail_with(self, failure: Failure) -> None:
        self._end.fail(failure, self._now.monotonic)

    def _begin(self, phase: Phase) -> None:
        self._end.begin(phase, self._now.monotonic)

    def _wiped(self, reason: str) -> None:
        self._outbox.note("warn", "data_removed", reason=reason)
        failure = None
        if reason:
            failure = to_failure(StorageFailed(f"reset could not remove all data: {reason}"))
        if self._end.wiped(failure, self._now.monotonic):
            self._launch_all()

    def _search_backend(self, *, indexer: bool) -> None:
        self._roster.searching = indexer
        for process, service in self._roster.children():
            if service.searches and indexer and not process.alive and self._end.running:
                self._launch(process)
            elif service.searches and not indexer and process.serving:
                self._end.ask(process, self._now.monotonic)

    # ---- time

    def _woke(self) -> None:
        now = self._now.monotonic
        if now >= self._liveness.due:
            self._tick(now)
        for process in self._roster:
            if process.due is not None and now >= process.due and self._end.running:
                self._launch(process)
            if process.deadline is not None and now >= process.deadline:
                self._condemn(process, "deadline")
        if self._redis.state is State.STARTING:
            self._outbox.add(ev.ProbeRedis(self._redis.pid))

    def _tick(self, now: float) -> None:
        self._liveness.tick(now)
        for process, why in self._liveness.faulty(now):
            self._condemn(process, why)
        self._outbox.add(ev.Observe())
        if self._liveness.pings:
            for process, _ in self._roster.children():
                if process.serving:
                    self._outbox.tell(process, Ping(self._liveness.number))

    def _next_wake(self) -> float:
        times = [self._liveness.due, *self._roster.times()]
        redis = self._redis
        if redis.state is State.STARTING and redis.deadline is not None:
            elapsed = self._now.monotonic - (redis.deadline - LISTEN_LIMIT)
            times.append(self._now.monotonic + max(PROBE, elapsed / 8))
        return min(times)


def _spoken(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit code {status}"
