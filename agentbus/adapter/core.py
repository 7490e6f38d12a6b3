"""The adapter without IO: what the harness and the daemon say in, what to write and do out.

It composes: `wire.mcp` speaks with the harness, `link` with the daemon, `sessions` holds claims and
inboxes, `calls` what the agent has asked for, `answers` what is on its way to it, `updates` what it
is told unasked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, assert_never

import msgspec

from agentbus.adapter import arguments, tools
from agentbus.adapter.answers import Answers
from agentbus.adapter.bindings import Thread
from agentbus.adapter.calls import Calls
from agentbus.adapter.events import (
    Asked,
    Complain,
    DaemonClosed,
    DaemonConnected,
    DaemonData,
    DaemonStarted,
    DaemonUnreachable,
    Effect,
    Event,
    Exit,
    Flushed,
    StdinClosed,
    StdinData,
    StdoutBroken,
    WakeAt,
    Withdrawn,
    Woke,
)
from agentbus.adapter.hearing import Hearing
from agentbus.adapter.identity import Given, Identity, Project
from agentbus.adapter.link import Link
from agentbus.adapter.requests import INBOX as COUNTS
from agentbus.adapter.requests import Arguments
from agentbus.adapter.sessions import Sessions
from agentbus.adapter.updates import INBOX, Updates
from agentbus.adapter.wishes import Wishes
from agentbus.config import Settings
from agentbus.errors import AgentbusError, InternalError
from agentbus.model.ports import Instant, Tokens
from agentbus.runtime import exits
from agentbus.wire.mcp import (
    Cancelled,
    Greeted,
    McpServer,
    ResourceRead,
    Say,
    ServerInfo,
    ToolCall,
)

LEAVE_SECONDS: Final = 1.0
"""How long calls may go on after stdin has ended; a harness waits two seconds at best."""


OVERSLEPT_SECONDS: Final = 1.0
"""A turn that comes so late says that this process was stopped, or the whole machine."""


class Launch(msgspec.Struct, frozen=True):
    """How the adapter was started, and where."""

    given: Given
    project: Project
    settings: Settings
    version: str
    rendezvous: Callable[[], str | None] = lambda: None
    """What a session hook has left for this adapter."""


class AdapterCore:
    """One per process; `begin` first, then `handle` for everything that happens."""

    def __init__(self, launch: Launch, tokens: Tokens) -> None:
        self._effects: list[Effect] = []
        self._tools = {tool.name: tool for tool in tools.table(launch.settings)}
        info = ServerInfo("agentbus", "agentbus", launch.version, tools.INSTRUCTIONS)
        self._mcp = McpServer(info, list(self._tools.values()), [INBOX])
        self._identity = Identity(launch.given, launch.rendezvous)
        self._wishes = Wishes(launch.settings, tokens)
        self._link = Link(self._effects)
        self._sessions = Sessions(self._link, launch.given.agent, launch.project, launch.settings)
        self._answers = Answers(self._mcp, self._sessions.reports, self._effects)
        self._calls = Calls(self._link, self._sessions, self._answers)
        self._updates = Updates(self._mcp, self._answers)
        self._hearing = Hearing(
            self._link, self._sessions, self._calls, self._answers, self._updates
        )
        self._fixed = launch.given.application is not None and launch.given.session is not None
        self._project = launch.project
        self._complaint: str | None = None
        self._leave_at: float | None = None
        self._left = False
        self._handled_at = 0.0
        self._waking_at: float | None = None
        self._offset: float | None = None

    def begin(self, now: Instant) -> list[Effect]:
        """Reaches for the daemon, before anybody asks."""
        if self._fixed:
            self._expect(None, now.monotonic)
        self._link.begin()
        return self._turn(now.monotonic)

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """What follows from an event."""
        self._look_back(now.monotonic)
        self._look_at_clocks(now)
        self._dispatch(event, now)
        return self._turn(now.monotonic)

    def _look_back(self, now: float) -> None:
        """Time in which the process was stopped is nobody's delay: the daemon gets it again."""
        if self._waking_at is None:
            return
        slept = now - max(self._waking_at, self._handled_at)
        if slept > OVERSLEPT_SECONDS:
            self._link.overslept(slept)
            self._sessions.overslept(slept)
            self._calls.overslept(slept, now)

    def _look_at_clocks(self, now: Instant) -> None:
        """Where a machine sleeps the monotonic clock stands still, while cursors age."""
        offset = now.wall - now.monotonic
        if self._offset is not None and offset - self._offset > OVERSLEPT_SECONDS:
            self._sessions.leapt()
        self._offset = offset

    def _turn(self, now: float) -> list[Effect]:
        self._calls.run(now)
        self._complain()
        if self._leave_at is not None and not self._left:
            idle = not self._calls.open and not self._answers.unwritten
            if idle or self._leave_at <= now:
                self._leave()
        if not self._left:
            self._updates.run(now)
        self._handled_at, self._waking_at = now, (wake := self._next_time(now))
        effects = [*self._effects, WakeAt(wake)] if wake is not None else list(self._effects)
        self._effects.clear()
        return effects

    def _complain(self) -> None:
        """Harnesses keep what stands on stderr; without a call nobody else would be told."""
        problem = self._link.problem or self._project.problem
        if problem is not None and problem.line != self._complaint:
            self._complaint = problem.line
            self._effects.append(Complain(problem))

    def _next_time(self, now: float) -> float | None:
        times = (
            self._link.next_time,
            self._sessions.next_time(),
            self._calls.next_time(now),
            self._updates.next_time,
            None if self._left else self._leave_at,
        )
        return min((time for time in times if time is not None), default=None)

    def _dispatch(self, event: Event, now: Instant) -> None:
        match event:
            case StdinData():
                self._harness_said(event.data, now)
            case StdinClosed():
                self._leave_at = now.monotonic + LEAVE_SECONDS
                self._calls.close()
            case StdoutBroken() | Asked():
                self._leave()
            case Flushed():
                self._answers.flushed(event.token)
            case Withdrawn():
                self._answers.withdrawn(event.token)
            case Woke():
                self._woke(now.monotonic)
            case (
                DaemonConnected()
                | DaemonUnreachable()
                | DaemonData()
                | DaemonClosed()
                | DaemonStarted()
            ):
                self._daemon(event, now.monotonic)
            case _:
                assert_never(event)

    def _woke(self, now: float) -> None:
        if self._link.is_silent(now):
            self._lost(now)
            self._link.broken(now)
        self._link.woke(now)
        self._sessions.woke(now)

    def _leave(self) -> None:
        if self._left:
            return
        self._left = True
        for line in self._mcp.close():
            self._answers.write(line)
        self._effects.append(Exit(exits.OK if self._link.problem is None else exits.FAILED))

    # the harness

    def _harness_said(self, data: bytes, now: Instant) -> None:
        for event in self._mcp.feed(data):
            match event:
                case Say():
                    self._answers.write(event.line)
                case ToolCall() | ResourceRead():
                    self._called(event, now)
                case Cancelled():
                    self._calls.remove(event.call)
                    self._answers.cancelled(event.call)
                case Greeted():
                    self._expect(event.client, now.monotonic)
                case _:
                    assert_never(event)

    def _expect(self, client: str | None, now: float) -> None:
        """Registers early, so that a message sent from now on is not missed."""
        caller = self._identity.expect(client)
        if caller is not None:
            self._sessions.want(caller, now)

    def _called(self, call: ToolCall | ResourceRead, now: Instant) -> None:
        try:
            if isinstance(call, ResourceRead):
                self._ask(call, {}, now)
            else:
                self._use(call, now)
        except AgentbusError as error:
            self._answers.fail(call.call, error)

    def _use(self, call: ToolCall, now: Instant) -> None:
        given, said = self._identity.in_band(call.client, call.arguments)
        given = arguments.check(self._tools[call.name], given)
        if call.name == "bind_caller":
            self._identity.bind(given, now.monotonic)
            self._answers.answer(call.call, b'{"bound":true}')
        else:
            self._ask(call, given, now, said)

    def _ask(
        self,
        call: ToolCall | ResourceRead,
        given: Arguments,
        now: Instant,
        said: Thread | None = None,
    ) -> None:
        """Raises what cannot be asked for, and why."""
        caller = self._identity.caller(call.client, call.meta, now.monotonic, said)
        session = self._sessions.want(caller, now.monotonic)
        tool = COUNTS if isinstance(call, ResourceRead) else call.name
        wish = self._wishes.wish(tool, given, call.client or self._identity.client, now)
        problem = self._link.wanted(now.monotonic)
        if problem is not None:
            raise problem
        self._calls.add(call.call, session, wish, now.monotonic)

    # the daemon

    def _daemon(
        self,
        event: DaemonConnected | DaemonUnreachable | DaemonData | DaemonClosed | DaemonStarted,
        now: float,
    ) -> None:
        match event:
            case DaemonConnected():
                self._link.connected(event.configuration, now)
            case DaemonUnreachable():
                self._link.unreachable(event.error, now)
            case DaemonStarted():
                self._link.started(event.error, now)
            case DaemonClosed():
                self._link.closed(now)
                self._lost(now)
            case DaemonData():
                self._daemon_said(event.data, now)

    def _lost(self, now: float) -> None:
        self._sessions.link_lost()
        self._calls.link_lost(may_return=self._link.may_start, now=now)

    def _daemon_said(self, data: bytes, now: float) -> None:
        was_ready = self._link.ready
        try:
            incoming = self._link.feed(data, now)
            if self._link.ready and not was_ready:
                self._hearing.greeted(now)
            for each in incoming:
                self._hearing.hear(each, now)
        except InternalError:
            self._lost(now)
            self._link.broken(now)
