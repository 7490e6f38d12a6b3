"""The supervisor as a process: the real core, its effects carried out as `supervisor.supervisor`
does. Answers to effects are handled before the effects that follow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, assert_never

from agentbus.errors import AgentbusError
from agentbus.supervisor import events as ev
from agentbus.supervisor.core import Core, RedisFacts
from agentbus.supervisor.handover import End as EndName
from agentbus.supervisor.services import REDIS, SERVICES, ends
from agentbus.wire import framing
from agentbus.wire.error_codes import from_failure
from agentbus.wire.events import Exit, WakeAt, Woke
from agentbus.wire.links import FromChild, Hand, Stop
from tests.support.simulation import pipes
from tests.support.simulation.pipes import Delays, End
from tests.support.simulation.processes import Process
from tests.support.simulation.scheduler import Timer
from tests.support.simulation.sockets import Listener

if TYPE_CHECKING:
    from tests.support.simulation.machine import Machine

PEERS: Final = ends(SERVICES)

OnReport = Callable[[AgentbusError | None], None]


class Daemon(Process):
    """`report` is told once: None for ready, or why not."""

    def __init__(self, machine: Machine, pid: int, report: OnReport) -> None:
        super().__init__(machine.scheduler, "supervisor", pid)
        self.listener = Listener(machine.scheduler)
        self.listener.share(self)
        self.children: dict[str, Process] = {}
        """By service; and Redis."""
        self.ready = False
        self.status: int | None = None
        """Its exit code, once it has ended by itself."""
        self.statuses: dict[str, int] = {}
        """How its processes ended, the last of each name."""
        self.refused_forks = 0
        self._machine = machine
        self._report: OnReport | None = report
        self._delays = Delays(machine.scheduler, "daemon")
        self._core = Core(SERVICES, pid, RedisFacts("valkey-server", "9.1.2"), {})
        self._controls: dict[str, tuple[End, framing.FrameDecoder[Any]]] = {}
        self._ends: dict[EndName, End] = {}
        self._redis_path = ""
        self._timer: Timer | None = None
        self._stopping = False
        self._code: int | None = None
        self.post(self.happened, ev.Started())

    @property
    def serves(self) -> bool:
        """Whether somebody who greets it is answered, and not with its end."""
        gateway = self.children.get("gateway")
        return self.ready and not self._stopping and gateway is not None and gateway.alive

    @property
    def held_ends(self) -> list[EndName]:
        """Descriptors that wait for a child, for checks."""
        return list(self._ends)

    def stop(self) -> None:
        """SIGTERM."""
        self.post(self.happened, ev.StopSignal(15))

    # ---- the core

    def happened(self, event: ev.Event) -> None:
        """One event, and all that follows from it."""
        effects = deque(self._ask(event))
        while effects and self._code is None:
            answer = self._perform(effects.popleft())
            if answer is not None:
                effects.extendleft(reversed(self._ask(answer)))
        if self._code is not None and self.alive:
            self.status = self._code
            self.end(self._code)

    def _ask(self, event: ev.Event) -> list[ev.Effect]:
        self.scheduler.handled(self.label, event)
        return self._core.handle(event, self.scheduler.instant())

    def _perform(self, effect: ev.Effect) -> ev.Event | None:  # noqa: C901 - one flat match
        match effect:
            case ev.Fork(name, given):
                return self._fork(name, given)
            case ev.StartRedis(keep_snapshot):
                return self._start_redis(keep_snapshot=keep_snapshot)
            case ev.ProbeRedis():
                place, path = self._machine.redis, self._redis_path
                return ev.RedisListens(self.children[REDIS].pid) if place.listens(path) else None
            case ev.Observe():
                return ev.Observed({name: _state(each) for name, each in self.children.items()})
            case ev.Tell(name, message):
                self._stopping = self._stopping or isinstance(message, Stop)
                self._say(name, bytes(framing.encode(message)), None)
            case ev.HandEnd(end):
                message = bytes(framing.encode(Hand(end.link, end.number)))
                self._say(end.owner, message, self._take(end))
            case ev.DropEnd(end):
                held = self._ends.pop(end, None)
                if held is not None:
                    held.close()
            case ev.Kill(name, pid, gently):
                self._kill(name, pid, gently=gently)
            case ev.ReportReady():
                self.ready = True
                self._tell_starter(None)
            case ev.ReportFailure(failure):
                self._tell_starter(from_failure(failure))
            case ev.CloseListener():
                self.listener.leave(self)
            case ev.Wipe():
                return ev.Wiped(self._machine.wipe())
            case ev.Note(_, action, _):
                self.scheduler.trace.note(self.scheduler.now, f"{self.label} says {action}")
            case WakeAt(when):
                self._wake_at(when)
            case Exit(code):
                self._code = code
            case _:
                assert_never(effect)
        return None

    def _tell_starter(self, error: AgentbusError | None) -> None:
        report, self._report = self._report, None
        if report is not None:
            report(error)

    def _wake_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancelled = True
        self._timer = self.scheduler.at(when, self.post, self.happened, Woke())

    # ---- processes

    def _fork(self, name: str, given: list[EndName]) -> ev.Event:
        self._stopping = False  # a reset has begun anew
        taken = {end.link: self._take(end) for end in given}
        if self.refused_forks:
            self.refused_forks -= 1
            for end in taken.values():
                end.close()
            return ev.ForkFailed(name, "Resource temporarily unavailable")
        mine, theirs = pipes.connect(self.scheduler, self._delays)
        child = self._machine.fork(name, theirs, taken, self.listener)
        self._adopt(child)
        decoder: framing.FrameDecoder[Any] = framing.FrameDecoder(FromChild)
        self._controls[name] = (mine, decoder)
        mine.incoming.read(
            self,
            lambda data, _: self._heard(name, child.pid, decoder.feed(data)),
            lambda: self._silent(name, child.pid),
        )
        return ev.Forked(name, child.pid)

    def _start_redis(self, *, keep_snapshot: bool) -> ev.Event:
        place = self._machine.redis
        if place.holder is not None:  # of a daemon before
            self.scheduler.after(self._delays(), place.holder.kill)
            return ev.RedisHeld(place.holder.pid)
        server = place.start(self._machine.pid(), keep_snapshot=keep_snapshot)
        self._redis_path = server.path
        self._adopt(server)
        return ev.Forked(REDIS, server.pid, server.path)

    def _adopt(self, process: Process) -> None:
        self.children[process.name] = process
        process.on_death.append(lambda dead, status: self.later(
            self._delays(), self._reap, dead, status
        ))  # fmt: skip

    def _reap(self, dead: Process, status: int) -> None:
        """Its last words first: they have all arrived, or arrive before it is reaped."""
        control = self._controls.get(dead.name)
        if control is not None and not control[0].incoming.is_drained:
            self.later(1e-5, self._reap, dead, status)
            return
        self._forget(dead.name)
        self.statuses[dead.name] = status
        if self.children.get(dead.name) is dead:
            del self.children[dead.name]
        self.happened(ev.Died(dead.name, dead.pid, status))

    def _kill(self, name: str, pid: int, *, gently: bool) -> None:
        process = self.children.get(name)
        if process is None or process.pid != pid:
            return
        if gently:
            process.later(self._delays(), process.end, 0)
        else:
            self.scheduler.after(self._delays(), process.kill)

    # ---- control links

    def _heard(self, name: str, pid: int, messages: list[Any]) -> None:
        process = self.children.get(name)
        for message in messages:
            if process is not None and process.pid == pid and self.alive:
                self.happened(ev.Said(name, message))

    def _silent(self, name: str, pid: int) -> None:
        process = self.children.get(name)
        if process is not None and process.pid == pid:
            self._forget(name)
            self.happened(ev.FellSilent(name, pid))

    def _say(self, name: str, data: bytes, right: End | None) -> None:
        control = self._controls.get(name)
        if control is not None:
            self.write(control[0].outgoing, data, right)
        elif right is not None:
            right.close()

    def _forget(self, name: str) -> None:
        control = self._controls.pop(name, None)
        if control is not None:
            control[0].close()

    def _take(self, name: EndName) -> End:
        if name not in self._ends:
            pair = pipes.connect(self.scheduler, self._delays)
            for owner, end in zip(PEERS[name.link], pair, strict=True):
                self._ends[EndName(name.link, name.number, owner)] = end
        return self._ends.pop(name)

    # ---- the end

    def died(self) -> None:
        """Children are killed with it at once (Linux), or learn it from their control links."""
        for control, _ in list(self._controls.values()):
            control.close()
        for end in self._ends.values():
            end.close()
        self.listener.leave(self)
        by_the_kernel = self.scheduler.chance("daemon").random() < 0.5
        for process in list(self.children.values()):
            if self._code is not None or by_the_kernel:
                process.kill()
        self._tell_starter(self._machine.ended_early())


def _state(process: Process) -> Any:
    if not process.alive:
        return "gone"
    return "stopped" if process.stopped else "running"
