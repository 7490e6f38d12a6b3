"""The adapter without IO: what the harness and the daemon say in, what to write and do out.

It composes: `wire.mcp` speaks with the harness, `link` with the daemon, `sessions` holds claims and
inboxes, `calls` what the agent has asked for, `answers` what is on its way to it.
"""

from __future__ import annotations

from typing import Final, assert_never

import msgspec

from agentbus.adapter import arguments, tools
from agentbus.adapter.answers import Answers
from agentbus.adapter.calls import Calls, Receive, Who
from agentbus.adapter.events import (
    Asked,
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
from agentbus.adapter.identity import CLAUDE, CODEX, Given, Identity, Project, application_of
from agentbus.adapter.link import Link
from agentbus.adapter.operations import Arguments, Operation
from agentbus.adapter.sessions import Sessions
from agentbus.client.connection import Answer, Incoming, Note
from agentbus.config import KIB, Settings
from agentbus.errors import AgentbusError, InternalError
from agentbus.model.ports import Instant, Tokens
from agentbus.wire.mcp import Cancelled, Greeted, McpServer, Say, ServerInfo, ToolCall
from agentbus.wire.rpc import DeliverNote, EpochNote, StoppingNote

LEAVE_SECONDS: Final = 1.0
"""How long calls may go on after stdin has ended; a harness waits two seconds at best."""

SHOWN_KIB: Final = {CODEX: 8, CLAUDE: 44}
"""How much of a result these programs show their model, measured; others show 28 KiB or more."""

SHOWN_KIB_ELSEWHERE: Final = 28


class Launch(msgspec.Struct, frozen=True):
    """How the adapter was started, and where."""

    given: Given
    project: Project
    settings: Settings
    version: str


class AdapterCore:
    """One per process; `begin` first, then `handle` for everything that happens."""

    def __init__(self, launch: Launch, tokens: Tokens) -> None:
        self._settings = launch.settings
        self._tokens = tokens
        self._effects: list[Effect] = []
        self._tools = {tool.name: tool for tool in tools.table(launch.settings)}
        info = ServerInfo("agentbus", "agentbus", launch.version, tools.INSTRUCTIONS)
        self._mcp = McpServer(info, list(self._tools.values()))
        self._identity = Identity(launch.given)
        self._link = Link(self._effects)
        self._sessions = Sessions(self._link, launch.given.agent, launch.project)
        self._answers = Answers(self._mcp, self._sessions.reports, self._effects)
        self._calls = Calls(self._link, self._sessions, self._answers)
        self._fixed = launch.given.application is not None and launch.given.session is not None
        self._leave_at: float | None = None
        self._left = False

    def begin(self, now: Instant) -> list[Effect]:
        """Reaches for the daemon, before anybody asks."""
        if self._fixed:
            self._expect(None, now.monotonic)
        self._link.begin()
        return self._turn(now.monotonic)

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """What follows from an event."""
        self._dispatch(event, now.monotonic)
        return self._turn(now.monotonic)

    def _turn(self, now: float) -> list[Effect]:
        self._calls.run(now)
        if self._leave_at is not None and not self._left:
            idle = not self._calls.open and not self._answers.unwritten
            if idle or self._leave_at <= now:
                self._leave()
        wake = self._next_time(now)
        effects = [*self._effects, WakeAt(wake)] if wake is not None else list(self._effects)
        self._effects.clear()
        return effects

    def _next_time(self, now: float) -> float | None:
        times = (
            self._link.next_time,
            self._sessions.next_time(),
            self._calls.next_time(now),
            None if self._left else self._leave_at,
        )
        return min((time for time in times if time is not None), default=None)

    def _dispatch(self, event: Event, now: float) -> None:
        match event:
            case StdinData():
                self._harness_said(event.data, now)
            case StdinClosed():
                self._leave_at = now + LEAVE_SECONDS
                self._calls.close()
            case StdoutBroken() | Asked():
                self._leave()
            case Flushed():
                self._answers.flushed(event.token)
            case Withdrawn():
                self._answers.withdrawn(event.token)
            case Woke():
                self._woke(now)
            case (
                DaemonConnected()
                | DaemonUnreachable()
                | DaemonData()
                | DaemonClosed()
                | DaemonStarted()
            ):
                self._daemon(event, now)
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
        self._effects.append(Exit(0))

    # the harness

    def _harness_said(self, data: bytes, now: float) -> None:
        for event in self._mcp.feed(data):
            match event:
                case Say():
                    self._answers.write(event.line)
                case ToolCall():
                    self._called(event, now)
                case Cancelled():
                    self._calls.remove(event.call)
                    self._answers.cancelled(event.call)
                case Greeted():
                    self._expect(event.client, now)
                case _:
                    assert_never(event)

    def _expect(self, client: str | None, now: float) -> None:
        """Registers early, so that a message sent from now on is not missed."""
        caller = self._identity.expect(client)
        if caller is not None:
            self._sessions.want(caller, now)

    def _called(self, call: ToolCall, now: float) -> None:
        try:
            given = arguments.check(self._tools[call.name], call.arguments)
            session = self._sessions.want(self._identity.caller(call.client, call.meta), now)
            wish = self._wish(call.name, given, now)
        except AgentbusError as error:
            self._answers.fail(call.call, error)
            return
        problem = self._link.wanted(now)
        if problem is None:
            self._calls.add(call.call, session, wish, now)
        else:
            self._answers.fail(call.call, problem)

    def _wish(self, tool: str, given: Arguments, now: float) -> Operation | Receive | Who:
        ceiling = self._ceiling(given.pop("max_kib", None))
        match tool:
            case "whoami":
                return Who()
            case "recv":
                limit = int(given.get("max_messages", self._settings.recv_default_count))
                return Receive(limit, ceiling, now + given.get("wait_seconds", 0))
            case "send":
                return Operation(
                    tool, given, ceiling, given.get("message_id") or self._tokens.token()
                )
            case _:
                return Operation(tool, given, ceiling)

    def _ceiling(self, max_kib: float | None) -> int:
        if max_kib is not None:
            return int(max_kib) * KIB
        shown = SHOWN_KIB.get(application_of(self._identity.client), SHOWN_KIB_ELSEWHERE)
        return min(shown, self._settings.result_default_kib) * KIB

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
                self._sessions.link_ready()
            for each in incoming:
                self._take(each, now)
        except InternalError:
            self._lost(now)
            self._link.broken(now)

    def _take(self, incoming: Incoming, now: float) -> None:
        match incoming:
            case Answer():
                self._sessions.answered(incoming, now)
                self._calls.answered(incoming, now)
            case Note(params=DeliverNote() as note):
                self._sessions.deliver(note)
            case Note(params=EpochNote() as note):
                self._sessions.new_epoch(note.epoch, now)
            case Note(params=StoppingNote() as note):
                self._link.stopping(note)
            case _:
                pass
