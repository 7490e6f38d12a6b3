"""A forked child as `runtime.child.Child` runs one: the same order of events, the same turns.

What a core sends leaves the process at the end of the turn, link by link; a child that is killed
before that has not said it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from agentbus.errors import SetupError
from agentbus.model.ports import Instant
from agentbus.runtime import exits
from agentbus.wire import framing
from agentbus.wire.error_codes import to_failure
from agentbus.wire.events import Closed, Exit, Note, Opened, Received, Send, TurnEnded, WakeAt, Woke
from agentbus.wire.links import CONTROL, Failing, Hand, Ping, Pong, Ready, Stop, Taken, ToChild
from agentbus.writer.awaiting import Awaiting
from tests.support.simulation.pipes import End
from tests.support.simulation.processes import Process
from tests.support.simulation.scheduler import Scheduler, Timer

FAULTY: Final = frozenset({"operation_crashed", "unexpected"})
"""Log lines that tell of a fault of ours, whatever has happened around us."""


class Broken(AssertionError):
    """A core has said that something went wrong which nothing outside of it explains."""


def check_note(level: str, action: str, fields: dict[str, Any]) -> None:
    """Raises Broken at a log line that must never be written."""
    if action in FAULTY:
        raise Broken(f"{level} {action} {fields}")


class Application(Protocol):
    """The shell of one core."""

    @property
    def unions(self) -> Mapping[str, Any]:
        """What it receives, by link."""

    def start(self) -> None:
        """Makes the core. Raises StorageFailed: to be called again, a while; SetupError."""

    def handle(self, event: Any) -> list[Any]:
        """What the core wants done."""

    def perform(self, effect: Any) -> None:
        """An effect that is not every core's."""

    def close(self) -> None:
        """The orderly end."""

    def died(self) -> None:
        """What belonged to the process is gone."""


class _Link:
    def __init__(self, end: End, union: Any) -> None:
        self.end = end
        self.decoder: framing.FrameDecoder[Any] = framing.FrameDecoder(union)
        self.out = bytearray()
        self.closed = False


class Child(Process):
    """`make` builds the application around the child."""

    def __init__(
        self,
        scheduler: Scheduler,
        name: str,
        pid: int,
        control: End,
        links: Mapping[str, End],
        make: Callable[[Child], Application],
    ) -> None:
        super().__init__(scheduler, name, pid)
        self._given = dict(links)
        self.application = make(self)
        self._links = {CONTROL: _Link(control, ToChild)}
        self._rights: deque[End] = deque()
        self._successors: dict[str, tuple[End, int]] = {}
        self._early: list[Any] = []
        self._soon: list[Callable[[], None]] = []
        self._timer: Timer | None = None
        self._started = self._said_ready = False
        self._turn_asked = self._received = False
        self._code: int | None = None
        self._awaiting = Awaiting(self._start_application)
        self.later(scheduler.chance("forks").uniform(0.001, 0.05), self._begin)

    # ---- what applications ask for

    def ready(self) -> None:
        """Tells the supervisor, once."""
        if not self._said_ready:
            self._said_ready = True
            self._send(CONTROL, Ready())

    def call_soon(self, action: Callable[[], None]) -> None:
        """In the next turn of the loop, in the order of the calls."""
        self._soon.append(action)
        if len(self._soon) == 1:
            self.later(self.scheduler.chance("turns").random() * 1e-4, self._turn)

    def happened(self, event: Any) -> None:
        """One event, and what follows from it."""
        if not self._started or self._code is not None:
            return
        self.scheduler.handled(self.label, event)
        own = []
        for effect in self.application.handle(event):
            match effect:
                case Send(link, message):
                    self._send(link, message)
                case WakeAt(when):
                    self._wake_at(when)
                case Exit(code):
                    self._exit(code)
                case _:
                    own.append(effect)
        for effect in own:
            self.application.perform(effect)

    def end_of(self, link: str) -> End | None:
        """The end that is in use, for checks."""
        found = self._links.get(link)
        return None if found is None or found.closed else found.end

    # ---- life

    def _begin(self) -> None:
        control = self._links[CONTROL].end
        control.incoming.read(self, self._from_supervisor, self._orphaned)
        self._try_start()

    def _try_start(self) -> None:
        if any(isinstance(message, Stop) for message in self._early):
            self._exit(exits.OK)
            return
        try:
            started = self._awaiting.attempt(self.scheduler.instant())
        except SetupError as error:
            self._send(CONTROL, Failing(to_failure(error)))
            self._exit(exits.FAILING)
            return
        self._say(self._awaiting)
        if not started:
            self.later(self._awaiting.retry_seconds, self._try_start)
            return
        self._started = True
        given, self._given = self._given, {}
        for name, end in given.items():
            self._open(name, end)
        early, self._early = self._early, []
        for message in early:
            self._messages(CONTROL, [message])

    def _start_application(self, _now: Instant) -> bool:
        self.application.start()
        return True

    def _say(self, awaiting: Awaiting[bool]) -> None:
        effects, awaiting.effects = awaiting.effects, []
        for effect in effects:
            match effect:
                case Send(link, message):
                    self._send(link, message)
                case Note(level, action, fields):
                    check_note(level, action, fields)
                case _:
                    raise TypeError(type(effect))

    def _exit(self, code: int) -> None:
        if self._code is None:
            self._code = code
            self.call_soon(self._leave)

    def _leave(self) -> None:
        assert self._code is not None
        self._flush()
        self.application.close()
        self.end(self._code)

    def _orphaned(self) -> None:
        self.happened(Closed(CONTROL))
        self.end(exits.ORPHANED)

    def died(self) -> None:
        """Every descriptor is closed, those that were handed and not used yet among them."""
        self.application.died()
        for end in self._given.values():
            end.close()
        for link in self._links.values():
            link.end.close()
        for end in [*self._rights, *(end for end, _ in self._successors.values())]:
            end.close()

    # ---- turns

    def _turn(self) -> None:
        soon, self._soon = self._soon, []
        for action in soon:
            action()

    def _ask_turn(self) -> None:
        if not self._turn_asked:
            self._turn_asked = True
            self.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        if self._received:
            self._received = False
            self.happened(TurnEnded())
        self._turn_asked = False
        self._flush()

    def _flush(self) -> None:
        for link in self._links.values():
            if link.out and not link.closed:
                data, link.out = bytes(link.out), bytearray()
                self.write(link.end.outgoing, data)

    def _wake_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancelled = True
        self._timer = self.scheduler.at(when, self.post, self._woke)

    def _woke(self) -> None:
        self._timer = None
        self.happened(Woke())

    # ---- links

    def _send(self, name: str, message: Any) -> None:
        link = self._links.get(name)
        if link is not None and not link.closed:
            link.out += framing.encode(message)
            self._ask_turn()

    def _open(self, name: str, end: End) -> None:
        link = self._links[name] = _Link(end, self.application.unions[name])
        self.happened(Opened(name))
        end.incoming.read(
            self,
            lambda data, _: self._messages(name, link.decoder.feed(data)),
            lambda: self._ended(name, link),
        )

    def _ended(self, name: str, link: _Link) -> None:
        link.closed = True
        link.end.close()
        self.happened(Closed(name))
        self._take(name)

    def _take(self, name: str) -> None:
        link = self._links.get(name)
        if name in self._successors and link is not None and link.closed:
            end, number = self._successors.pop(name)
            self._open(name, end)
            self._send(CONTROL, Taken(name, number))

    def _messages(self, link: str, messages: list[Any]) -> None:
        for message in messages:
            self.happened(Received(link, message))
        if messages:
            self._received = True
            self._ask_turn()

    def _from_supervisor(self, data: bytes, right: End | None) -> None:
        if right is not None:
            self._rights.append(right)
        for message in self._links[CONTROL].decoder.feed(data):
            match message:
                case Ping(number):
                    self._send(CONTROL, Pong(number))
                case Hand(link, number):
                    self._successors[link] = (self._rights.popleft(), number)
                    self._take(link)
                case _ if self._started:
                    self._messages(CONTROL, [message])
                case _:
                    self._early.append(message)
