"""The adapter without IO: what the harness and the daemon say in, what to write and do out.

Delivery is decided here: a recv takes messages from its session's inbox into a line; when the shell
says that the last byte of the line is out, they are handed off, and that is reported to the daemon
in the same breath. A line taken back, or a call cancelled before it had one, puts them back.
"""

from __future__ import annotations

from typing import Final, assert_never

import msgspec

from agentbus.adapter import arguments, tools
from agentbus.adapter.calls import Calls, Handoff, Receive, Who
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
    Withdraw,
    Withdrawn,
    Woke,
    WriteStdout,
)
from agentbus.adapter.identity import CLAUDE, CODEX, Given, Identity, Project, application_of
from agentbus.adapter.link import Link
from agentbus.adapter.operations import Arguments, Operation
from agentbus.adapter.sessions import Sessions
from agentbus.client.connection import Answer, Incoming, Note
from agentbus.config import KIB, Settings
from agentbus.errors import AgentbusError, InternalError
from agentbus.model.ports import Instant, Tokens
from agentbus.wire.mcp import Cancelled, Greeted, Line, McpServer, Say, ServerInfo, ToolCall
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
        self._calls = Calls(self._link, self._sessions, self._answer, self._fail)
        self._fixed = launch.given.application is not None and launch.given.session is not None
        self._lines: dict[int, tuple[int, ...]] = {}
        self._written_with: dict[int, int] = {}
        self._unwanted: dict[int, None] = {}
        self._handoffs: dict[int, Handoff] = {}
        self._written = 0
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
            idle = not self._calls.open and not self._lines
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
                self._flushed(event.token)
            case Withdrawn():
                self._withdrawn(event.token)
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
            self._write(line)
        self._effects.append(Exit(0))

    # the harness

    def _harness_said(self, data: bytes, now: float) -> None:
        for event in self._mcp.feed(data):
            match event:
                case Say():
                    self._write(event.line)
                case ToolCall():
                    self._called(event, now)
                case Cancelled():
                    self._cancelled(event.call)
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
            self._fail(call.call, error)
            return
        problem = self._link.wanted(now)
        if problem is None:
            self._calls.add(call.call, session, wish, now)
        else:
            self._fail(call.call, problem)

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

    def _cancelled(self, call: int) -> None:
        token = self._written_with.get(call)
        if token is None:
            self._calls.remove(call)
            self._give_up([call])
            return
        self._unwanted[call] = None
        unsent = [each for each in self._effects if _writes(each, token)]
        if unsent:
            self._effects.remove(unsent[0])
            self._withdrawn(token)
        else:
            self._effects.append(Withdraw(token))

    def _give_up(self, calls: list[int]) -> None:
        """They get no answer: what was taken for it goes back."""
        line = None
        for call in calls:
            self._unwanted.pop(call, None)
            handoff = self._handoffs.pop(call, None)
            if handoff is not None:
                handoff.session.inbox.restore(handoff.batch)
            line = self._mcp.abandon(call)
        if line is not None:
            self._write(line)

    # answers

    def _answer(self, call: int, structured: bytes, handoff: Handoff | None = None) -> None:
        if handoff is not None:
            self._handoffs[call] = handoff
        line = self._mcp.answer(call, structured)
        if line is not None:
            self._write(line)

    def _fail(self, call: int, error: AgentbusError) -> None:
        line = self._mcp.fail(call, error)
        if line is not None:
            self._write(line)

    def _write(self, line: Line) -> None:
        self._written += 1
        self._lines[self._written] = line.calls
        for call in line.calls:
            self._written_with[call] = self._written
        self._effects.append(WriteStdout(line.data, self._written))

    def _flushed(self, token: int) -> None:
        """The one place where something counts as delivered."""
        calls = self._lines.pop(token, ())
        for call in calls:
            del self._written_with[call]
            self._unwanted.pop(call, None)
            handoff = self._handoffs.pop(call, None)
            if handoff is not None:
                handoff.session.inbox.hand_off(handoff.batch)
                self._sessions.report(handoff.session)
        self._mcp.settle(calls)

    def _withdrawn(self, token: int) -> None:
        """No byte of the line is out; the other calls of a batch are answered by another line."""
        calls = self._lines.pop(token, ())
        for call in calls:
            del self._written_with[call]
        self._give_up([call for call in calls if call in self._unwanted])

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
                self._lost(now)
                self._link.closed(now)
            case DaemonData():
                self._daemon_said(event.data, now)

    def _lost(self, now: float) -> None:
        self._sessions.link_lost()
        self._calls.link_lost(may_return=self._link.may_start, now=now)

    def _daemon_said(self, data: bytes, now: float) -> None:
        was_ready = self._link.ready
        try:
            incoming = self._link.feed(data, now)
        except InternalError:
            self._lost(now)
            self._link.broken(now)
            return
        if self._link.ready and not was_ready:
            self._sessions.link_ready()
        for each in incoming:
            self._take(each, now)

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


def _writes(effect: Effect, token: int) -> bool:
    return isinstance(effect, WriteStdout) and effect.token == token
