"""The shell that all forked children share: a uvloop, its links, one application.

    start      the control link is served; `Application.start`; then each link is `Opened`
    run        bytes become events, effects become bytes
    replaced   old link read to its end, `Closed`, `Opened`, `Taken` to the supervisor
    end        `exit`: what was sent is written (bounded), `Application.close`, the exit code

`Ping` and `Hand` are dealt with here; everything else from the supervisor is `Received` on
`control`. SIGTERM is an orderly stop, as if the supervisor had sent `Stop`.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

import msgspec
import uvloop

from agentbus.errors import SetupError, StorageFailed
from agentbus.model.ports import Instant
from agentbus.runtime import clock, exits, faults, logs, platform, tasks
from agentbus.runtime.context import ChildContext, Listening
from agentbus.runtime.faults import Point
from agentbus.runtime.links import ControlLink, Link, OnMessages
from agentbus.wire.error_codes import to_failure
from agentbus.wire.events import Closed, Exit, Opened, Received, Send, TurnEnded, WakeAt, Woke
from agentbus.wire.links import (
    CONTROL,
    Failing,
    Hand,
    Listen,
    Ping,
    Pong,
    Ready,
    Stop,
    Taken,
    ToChild,
)

FLUSH_SECONDS: Final = 2.0

_log = logs.get(__name__)


class Application(Protocol):
    """What a child does; the shell around its core."""

    def handle(self, event: Any) -> None:
        """One event; not before `start` has returned."""
        ...

    async def start(self) -> None:
        """Opens what the application needs. A SetupError or StorageFailed is final: the daemon
        says it, and stops."""
        ...

    async def close(self) -> None:
        """Closes it; the last call."""
        ...


class Child:
    """The process of a service; `unions` are the messages it receives, by link."""

    def __init__(self, context: ChildContext, unions: Mapping[str, Any]) -> None:
        self.loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        self.clock = clock.clock()
        self.fault = faults.requested(context.name)
        self._context = context
        self._unions = dict(unions)
        self._control = ControlLink(
            self.loop,
            context.control,
            ToChild,
            self._from_supervisor,
            self._orphaned,
            lambda error: self.crash(error, CONTROL),
        )
        self._links: dict[str, Link] = {CONTROL: self._control}
        self._unflushed: dict[str, Link] = {}
        """In the order of their first message: who is told first is woken first."""
        self._straight: dict[str, OnMessages] = {}
        self._successors: dict[str, tuple[socket.socket, int]] = {}
        self._application: Application | None = None
        self._early: list[Any] = []
        self._listening: Listening | None = None
        self._ended: asyncio.Future[int] = self.loop.create_future()
        self._timer: asyncio.Handle | None = None
        self._wake_due = math.inf
        self._started = False
        self._said_ready = False
        self.asked_to_stop = False
        """Whether the supervisor has asked for it; for a `start` that takes long."""
        self._turn_asked = False
        self._received = False

    def run(self, application: Application) -> int:
        """Runs until the application exits; the exit code."""
        platform.keep_freed_memory()
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            return runner.run(self._main(application))

    # ---- what the application asks for

    def send(self, link: str, message: msgspec.Struct) -> None:
        """Queues a message; written at the end of this turn. Dropped where the link is closed."""
        end = self._links.get(link)
        if end is not None:
            end.send(message)
            self._unflushed[link] = end
            self._ask_turn()

    def flush(self, link: str) -> None:
        """Writes what was sent to the link so far, instead of at the end of this turn."""
        end = self._unflushed.pop(link, None)
        if end is not None:
            end.flush()

    def straight(self, link: str, take: OnMessages) -> None:
        """What comes on the link is given to `take`, a read at a time, instead of being `Received`
        one by one; `TurnEnded` follows all the same."""
        self._straight[link] = take

    def ready(self) -> None:
        """Tells the supervisor, once, that this child serves its links."""
        if not self._said_ready:
            self._said_ready = True
            self.send(CONTROL, Ready())

    def exit(self, code: int) -> None:
        """Ends the loop once pending writes are flushed; the first code counts."""
        if not self._ended.done():
            self._ended.set_result(code)

    def fail(self, error: SetupError | StorageFailed) -> None:
        """Last words: restarting will not help, the daemon is to stop and say why."""
        _log.error("failing", code=error.code, text=error.message)
        self.send(CONTROL, Failing(to_failure(error)))
        self.exit(exits.FAILING)

    def wake_at(self, when: float) -> None:
        """Has `Woke` follow at this monotonic time; a later call replaces an earlier one."""
        self._cancel_timer()
        delay = max(0.0, when - self.clock.now().monotonic)
        self._timer = self.loop.call_later(math.ceil(delay * 1000) / 1000, self._wake)
        self._wake_due = when

    def now(self) -> Instant:
        """The time of the event in hand. It may be far ahead of the loop's own clock: that one may
        stand while the machine sleeps, and no test can set it. What is overdue by this one does
        not wait for the other."""
        now = self.clock.now()
        if now.monotonic >= self._wake_due:
            self._cancel_timer()
            self._timer = self.loop.call_soon(self._wake)
        return now

    def perform(self, effects: Iterable[Any]) -> list[Any]:
        """Carries out the effects that all cores share and returns the others, in order."""
        rest = []
        for effect in effects:
            match effect:
                case Send(link, message):
                    self.send(link, message)
                case WakeAt(when):
                    self.wake_at(when)
                case Exit(code):
                    self.exit(code)
                case _:
                    rest.append(effect)
        return rest

    def crash(self, error: BaseException, during: str) -> None:
        """Logs an error nobody had foreseen and ends the process; a fresh one replaces it."""
        _log.crash("crashed", error, during=during)
        self.exit(exits.CRASHED)

    # ---- life

    async def _main(self, application: Application) -> int:
        self._application = application
        self.loop.set_exception_handler(self._loop_error)
        self.loop.add_signal_handler(signal.SIGTERM, self._from_supervisor, [Stop()])
        self._control.open()
        await self._start(application)
        code = await self._ended
        await self._flush_all()
        try:
            await application.close()
        except Exception as error:  # noqa: BLE001 - whatever it is, the process ends now
            _log.crash("close_crashed", error)
            code = code or exits.CRASHED
        self._close_links()
        return code

    def _close_links(self) -> None:
        for link in self._links.values():
            link.close()
        unused = [sock for sock, _ in self._successors.values()]
        for sock in (*unused, *self._context.links.values()):
            sock.close()

    async def _start(self, application: Application) -> None:
        try:
            await application.start()
        except (SetupError, StorageFailed) as error:
            self.fail(error)
        except Exception as error:  # noqa: BLE001 - logged, and the supervisor decides
            self.crash(error, "start")
        else:
            self._started = True
            for name, sock in self._context.links.items():
                self._open(name, sock)
            if self._listening is not None:
                self._deliver(self._listening)
            early, self._early = self._early, []
            self._from_supervisor(early)

    async def _flush_all(self) -> None:
        draining = [tasks.start(link.drained(), "drain") for link in self._links.values()]
        await asyncio.wait(draining, timeout=FLUSH_SECONDS)

    def _orphaned(self) -> None:
        self._deliver(Closed(CONTROL))
        _log.warn("orphaned")
        logs.close()
        os._exit(exits.ORPHANED)  # nothing is waited for: a new daemon may be waiting for us

    def _loop_error(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Exception):
            _log.crash("loop_error", error, text=context.get("message", ""))
        else:
            _log.error("loop_error", text=context.get("message", ""))

    # ---- events

    def _deliver(self, event: Any) -> None:
        if not self._started or self._ended.done() or self._application is None:
            return
        try:
            self._application.handle(event)
        except Exception as error:  # noqa: BLE001 - its state is not to be trusted any more
            self.crash(error, type(event).__name__)

    def _hand_on(self, take: OnMessages, link: str, messages: list[Any]) -> None:
        if not self._started or self._ended.done():
            return
        try:
            take(messages)
        except Exception as error:  # noqa: BLE001 - as in `_deliver`
            self.crash(error, link)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._wake_due = None, math.inf

    def _wake(self) -> None:
        self._timer, self._wake_due = None, math.inf
        self._deliver(Woke())

    def _messages(self, link: str, messages: list[Any]) -> None:
        if not messages:
            return
        take = self._straight.get(link)
        if take is None:
            for message in messages:
                self._deliver(Received(link, message))
        else:
            self._hand_on(take, link, messages)
        self._received = True
        self._ask_turn()

    def _from_supervisor(self, messages: list[Any]) -> None:
        for message in messages:
            match message:
                case Ping(number):
                    self.send(CONTROL, Pong(number))
                case Hand(link, number):
                    self.fault(Point.TAKING)
                    self._successors[link] = (self._control.take_socket(), number)
                    self._replace(link)
                case Listen():
                    self._listen(self._control.take_socket())
                case _ if self._started:
                    self._messages(CONTROL, [message])
                case _:
                    self.asked_to_stop |= isinstance(message, Stop)
                    self._early.append(message)

    def _listen(self, sock: socket.socket) -> None:
        self._listening = Listening(sock)
        self._deliver(self._listening)

    def _ask_turn(self) -> None:
        if not self._turn_asked:
            self._turn_asked = True
            self.loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        if self._received:
            self._received = False
            self._deliver(TurnEnded())
        self._turn_asked = False
        unflushed, self._unflushed = self._unflushed, {}
        for link in unflushed.values():
            link.flush()

    # ---- links

    def _open(self, name: str, sock: socket.socket) -> None:
        link = Link(
            self.loop,
            sock,
            self._unions[name],
            lambda messages: self._messages(name, messages),
            lambda: self._link_ended(name),
            lambda error: self.crash(error, name),
        )
        self._links[name] = link
        self._deliver(Opened(name))
        link.open()
        if name in self._successors:
            link.read_out()

    def _link_ended(self, name: str) -> None:
        self._deliver(Closed(name))
        self._take(name)

    def _replace(self, name: str) -> None:
        """A successor means that the old peer is gone."""
        link = self._links.get(name)
        if link is not None:
            link.read_out()
        self._take(name)

    def _take(self, name: str) -> None:
        """Puts a handed end in use, once everything from the old peer has been read."""
        link = self._links.get(name)
        if name not in self._successors or link is None or not link.closed:
            return
        sock, number = self._successors.pop(name)
        self._open(name, sock)
        self.fault(Point.TAKEN)
        self.send(CONTROL, Taken(name, number))
