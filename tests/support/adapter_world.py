"""An adapter's core between a harness and a daemon that are lists, in virtual time."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from agentbus.adapter.core import AdapterCore, Launch
from agentbus.adapter.events import (
    Complain,
    Connect,
    DaemonClosed,
    DaemonConnected,
    DaemonData,
    DaemonStarted,
    DaemonUnreachable,
    Disconnect,
    Event,
    Exit,
    Flushed,
    StartDaemon,
    StdinData,
    WakeAt,
    Withdraw,
    Withdrawn,
    Woke,
    WriteDaemon,
    WriteStdout,
)
from agentbus.adapter.identity import Given, Project
from agentbus.config import Configuration, Settings
from agentbus.errors import AgentbusError
from agentbus.model.ports import Instant
from agentbus.wire.error_codes import to_rpc

Answer = dict[str, Any] | AgentbusError | None

SUBSCRIPTION = {
    "subscription": 1,
    "channel": "general",
    "position": 0,
    "expires_at": "2026-12-03T00:00:00.000Z",
    "include_own": False,
}


class Counting:
    """Tokens that can be told in advance."""

    def __init__(self) -> None:
        self.given = 0

    def token(self) -> str:
        self.given += 1
        return f"{self.given:032x}"


class World:
    """Carries out the core's effects; what the daemon answers is `answers`, by method."""

    def __init__(self, given: Given, project: Project, settings: Settings) -> None:
        self.settings = settings
        self.core = AdapterCore(Launch(given, project, settings, "0.0"), Counting())
        self._queue: deque[Event] = deque()
        self._busy = False
        self.now = 100.0
        self.suspended = 0.0
        self.wake_at: float | None = None
        self.running = True
        self.connected = False
        self.start_error: AgentbusError | None = None
        self.silent_start = False
        self.started = 0
        self.connects = 0
        self.exit_code: int | None = None
        self.complaints: list[str] = []
        self.blocked = False
        self.unwritten: list[WriteStdout] = []
        self.lines: list[dict[str, Any]] = []
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.held: list[tuple[int, str, dict[str, Any]]] = []
        self.answers: dict[str, Answer | Callable[[dict[str, Any]], Answer]] = {}
        self.answer_as_usual()
        self.attachments: list[str] = []
        self.epoch = "1.0"
        self._registered = 0
        self._identifier = 0

    def answer_as_usual(self) -> None:
        """What the daemon is asked from now on it answers at once, as nothing was wrong with it."""
        self.answers |= {
            "hello": {"protocol": 1, "version": "0.0", "instance": "i", "state": "ready"},
            "register": self._register,
            "heartbeat": lambda _: {"attachments": self.attachments, "lagging": False},
            "renew": {"subscriptions": [SUBSCRIPTION]},
            "release": {},
            "delivered": {},
            "send": lambda params: {
                "message_id": params["message_id"],
                "seq": 1,
                "sent_at": "2026-11-30T00:00:00.000Z",
                "duplicate": False,
            },
        }

    def _register(self, params: dict[str, Any]) -> Answer:
        self._registered += 1
        attachment = f"1.{self._registered}"
        self.attachments.append(attachment)
        return {
            "attachment": attachment,
            "display_name": "Sam",
            "agent": params.get("agent") or "Sam",
            "resumed": False,
            "epoch": self.epoch,
            "subscriptions": [SUBSCRIPTION],
        }

    # time and events

    def begin(self) -> World:
        self._busy = True
        self._perform(self.core.begin(Instant(self.now, 1.8e9 + self.now)))
        self._busy = False
        self.event(Woke())
        return self

    def event(self, event: Event) -> None:
        """Happens after what is happening, as in the shell."""
        self._queue.append(event)
        if not self._busy:
            self._busy = True
            while self._queue:
                now = Instant(self.now, 1.8e9 + self.now + self.suspended)
                self._perform(self.core.handle(self._queue.popleft(), now))
            self._busy = False

    def pass_time(self, seconds: float) -> None:
        """Lets time pass, waking the core whenever it asked for it."""
        end = self.now + seconds
        wakes = 0
        while self.wake_at is not None and self.wake_at <= end:
            self.now = max(self.now, self.wake_at)
            self.wake_at = None
            self.event(Woke())
            wakes += 1
            assert wakes < 1000 + 100 * seconds, "the core wakes up without end"
        self.now = end

    def oversleep(self, seconds: float, event: Event | None = None) -> None:
        """The process is stopped for so long; then something happens, or the late wake."""
        self.now += seconds
        self.wake_at = None
        self.event(event or Woke())

    def suspend(self, seconds: float) -> None:
        """The machine sleeps for so long, and its monotonic clock with it."""
        self.suspended += seconds

    def _perform(self, effects: list[Any]) -> None:
        self.wake_at = None
        for effect in effects:
            self._carry_out(effect)
        if not self.blocked:
            self.write_all()

    def _carry_out(self, effect: Any) -> None:
        match effect:
            case WakeAt() | Exit() | Disconnect() | Complain():
                self._note(effect)
            case WriteStdout():
                self.unwritten.append(effect)
            case Withdraw(token=token):
                self._withdraw(token)
            case WriteDaemon(data=data):
                self._to_daemon(data)
            case Connect():
                self._connect()
            case StartDaemon():
                self._start()

    def _note(self, effect: WakeAt | Exit | Disconnect | Complain) -> None:
        if isinstance(effect, WakeAt):
            self.wake_at = effect.when
        elif isinstance(effect, Complain):
            self.complaints.append(effect.error.line)
        elif isinstance(effect, Exit):
            self.exit_code = effect.code
        else:
            self.connected = False

    def _withdraw(self, token: int) -> None:
        for each in self.unwritten:
            if each.token == token:
                self.unwritten.remove(each)
                self.event(Withdrawn(token))
                return

    def write_all(self) -> None:
        while self.unwritten:
            self.write_one()

    def write_one(self) -> None:
        effect = self.unwritten.pop(0)
        assert effect.data.endswith(b"\n")
        self.lines.append(json.loads(effect.data))
        self.event(Flushed(effect.token))

    # the harness

    def feed(self, method: str, identifier: Any = None, **params: Any) -> None:
        self.event(StdinData(line(method, identifier, **params)))

    def greet(self, name: str = "tests", revision: str = "2025-11-25") -> World:
        client = {"name": name, "version": "1"}
        self.feed("initialize", "hi", protocolVersion=revision, clientInfo=client)
        return self

    def call(self, tool: str, meta: dict[str, Any] | None = None, **arguments: Any) -> int:
        """Begins a call; its id."""
        self._identifier += 1
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if meta is not None:
            params["_meta"] = meta
        self.feed("tools/call", self._identifier, **params)
        return self._identifier

    def result(self, identifier: Any) -> dict[str, Any] | None:
        """The structured result, None while there is no answer."""
        for each in self.lines:
            if each.get("id") == identifier:
                structured: dict[str, Any] = each["result"]["structuredContent"]
                return structured
        return None

    def now_result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Of a call that is answered at once."""
        result = self.result(self.call(tool, **arguments))
        assert result is not None
        return result

    # the daemon

    def _connect(self) -> None:
        self.connects += 1
        if not self.running:
            self.event(DaemonUnreachable())
            return
        self.connected = True
        self.event(DaemonConnected(Configuration(self.settings, "/config", exists=False)))

    def _start(self) -> None:
        self.started += 1
        if self.silent_start:
            return
        self.running = self.start_error is None
        self.event(DaemonStarted(self.start_error))

    def _to_daemon(self, data: bytes) -> None:
        if not self.connected:
            return
        for each in data.splitlines():
            document = json.loads(each)
            method, params = document["method"], document["params"]
            self.requests.append((method, params))
            answer = self.answers.get(method)
            if callable(answer):
                answer = answer(params)
            if answer is None:
                self.held.append((document["id"], method, params))
            else:
                self.answer(document["id"], answer)

    def answer(self, identifier: int, answer: Answer) -> None:
        document: dict[str, Any] = {"jsonrpc": "2.0", "id": identifier}
        if isinstance(answer, AgentbusError):
            document["error"] = to_rpc(answer)
        else:
            document["result"] = answer
        self.event(DaemonData(msgspec.json.encode(document) + b"\n"))

    def note(self, method: str, **params: Any) -> None:
        document = {"jsonrpc": "2.0", "method": method, "params": params}
        self.event(DaemonData(msgspec.json.encode(document) + b"\n"))

    def deliver(self, *contents: str, first: int = 1, **changes: Any) -> None:
        """Pushes messages of these contents to the last attachment's subscription."""
        messages = [envelope(first + index, each) for index, each in enumerate(contents)]
        params = {
            "attachment": self.attachments[-1],
            "epoch": self.epoch,
            "subscription": 1,
            "channel": "general",
            "through": first + len(contents) - 1,
            "messages": messages,
        }
        self.note("deliver", **(params | changes))

    def remember(self, *contents: str, first: int = 1, **changes: Any) -> None:
        """Pushes memories."""
        messages = [memory(first + index, each) for index, each in enumerate(contents)]
        self.deliver(*contents, first=first, **({"messages": messages} | changes))

    def revise(self, seq: int, content: str, revision: int = 2) -> None:
        """A memory that was pushed has changed."""
        self._change("revise", seq, message=memory(seq, content, revision))

    def revoke(self, seq: int) -> None:
        """A memory that was pushed was deleted."""
        self._change("revoke", seq)

    def _change(self, method: str, seq: int, **more: Any) -> None:
        self.note(
            method,
            attachment=self.attachments[-1],
            epoch=self.epoch,
            subscription=1,
            seq=seq,
            memory_id=f"k{seq}",
            **more,
        )

    def notice(self, kind: str, **more: Any) -> None:
        """The bus tells something in passing."""
        params = {"attachment": self.attachments[-1], "kind": kind, "channel": "memory"}
        self.note("notice", **(params | more))

    def lose(self, *, running: bool = True) -> None:
        """The connection breaks."""
        self.connected = False
        self.running = running
        self.held.clear()
        self.attachments.clear()
        self.event(DaemonClosed())

    def asked(self, method: str) -> list[dict[str, Any]]:
        """The params of all requests of a method."""
        return [params for each, params in self.requests if each == method]


def envelope(seq: int, content: str) -> dict[str, Any]:
    return {
        "message_id": f"m{seq}",
        "seq": seq,
        "channel": "general",
        "sender": "Ann",
        "agent": "Ann",
        "application": "a",
        "session": "s",
        "sent_at": "2026-11-30T00:00:00.000Z",
        "type": "message",
        "content": content,
        "thread": f"m{seq}",
    }


def memory(seq: int, content: str, revision: int = 1) -> dict[str, Any]:
    return envelope(seq, content) | {"memory_id": f"k{seq}", "revision": revision}


def line(method: str, identifier: Any = None, **params: Any) -> bytes:
    document: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if identifier is not None:
        document["id"] = identifier
    return json.dumps(document).encode() + b"\n"
