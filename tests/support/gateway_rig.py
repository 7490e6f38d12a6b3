"""A gateway's core between scripted ends: adapters that write lines, a writer, a projector, Redis.

Nothing answers by itself. What the core has asked for is in `frames` (to the writer), `asked` (to
the projector), `searches` (to the indexer), `reads`, `finds`, `inspections`, `measures` and
`control`; what adapters were sent is in `inbox`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from agentbus import __version__
from agentbus.config import Settings
from agentbus.gateway.core import Core
from agentbus.gateway.events import (
    CloseConnection,
    Connected,
    Disconnected,
    Effect,
    Event,
    Find,
    Found,
    Inspect,
    Inspected,
    Lines,
    Measure,
    Note,
    ReadStream,
    SearchEngine,
    SendFirst,
    SendIfRead,
    SendLines,
    StopInspection,
    StreamRead,
    UseRedis,
)
from agentbus.gateway.lanes import CREDIT_OPERATIONS
from agentbus.mirror.read import Entry
from agentbus.model.channel import ChannelInfo, Kind
from agentbus.model.ids import AttachmentId, ChannelId, CommitId, Seq, SessionId, SubscriptionId
from agentbus.model.ports import Instant
from agentbus.wire.error_codes import Failure
from agentbus.wire.events import Closed, Exit, Opened, Received, Send, WakeAt, Woke
from agentbus.wire.lines import Overlong
from agentbus.wire.links import (
    CONTROL,
    GATEWAY_INDEXER,
    GATEWAY_WRITER,
    PROJECTOR_GATEWAY,
    Accepted,
    Append,
    ChannelTop,
    ExpiredInfo,
    IndexState,
    MemoryChanged,
    NoReceipt,
    Outcome,
    Outcomes,
    Projection,
    ReceiptAsk,
    Refused,
    Register,
    Registered,
    Stop,
    SubscriptionInfo,
    Trimmed,
    Visible,
    VisibleMessage,
    Welcome,
)
from agentbus.wire.rpc import PROTOCOL

T = TypeVar("T")

GENERAL = ChannelId(1)
MEMORY = ChannelId(2)
NAMES: dict[int, tuple[str, Kind]] = {1: ("general", "ordinary"), 2: ("memory", "memory")}
EXPIRES = 1_800_000_000.0
AT = "2026-11-30T16:40:27.123Z"


def envelope(seq: int, padding: int = 0) -> bytes:
    return b'{"seq":%d,"sent_at":"%b","content":"%b"}' % (seq, AT.encode(), b"x" * padding)


def entries(first: int, last: int, *, sender: int = 900, padding: int = 0) -> list[Entry]:
    return [
        Entry(Seq(seq), SessionId(sender), envelope(seq, padding)) for seq in range(first, last + 1)
    ]


def info(number: int, channel: int = GENERAL, position: int = 0, **rest: Any) -> SubscriptionInfo:
    return SubscriptionInfo(
        SubscriptionId(number),
        NAMES[channel][0],
        ChannelId(channel),
        Seq(position),
        rest.get("expires_at", EXPIRES),
        rest.get("include_own", False),
        rest.get("undelivered", 0),
    )


class Rig:
    def __init__(self, *, start: bool = True, **settings: Any) -> None:
        self.settings = Settings(**settings)
        self.core = Core(self.settings, "/etc/agentbus.json")
        self.now = 1000.0
        self.wall = 1_764_520_000.0
        self.commit = 0
        self.wake: float | None = None
        self.effects: list[Effect] = []
        self.frames: list[Any] = []
        self.asked: list[Any] = []
        self.control: list[Any] = []
        self.searches: list[Any] = []
        self.engine: list[SearchEngine] = []
        self.reads: list[ReadStream] = []
        self.finds: list[Find] = []
        self.inspections: list[Inspect] = []
        self.stopped: list[int] = []
        self.log: list[Note] = []
        self.measures: list[Measure] = []
        self.closed: list[int] = []
        self.redis: str | None = None
        self.exit: int | None = None
        self.inbox: dict[int, list[dict[str, Any]]] = defaultdict(list)
        self.raw: dict[int, list[bytes]] = defaultdict(list)
        self._connections = 0
        self._requests = 0
        if start:
            self.start()

    # ---- driving

    def event(self, event: Event) -> list[Effect]:
        effects = self.core.handle(event, Instant(self.now, self.wall))
        for effect in effects:
            self._sort(effect)
        self.effects += effects
        return effects

    def _sort(self, effect: Effect) -> None:
        match effect:
            case Send(link, message):
                {
                    GATEWAY_WRITER: self.frames,
                    PROJECTOR_GATEWAY: self.asked,
                    GATEWAY_INDEXER: self.searches,
                }.get(link, self.control).append(message)
            case SendLines(connection, lines):
                for line in b"".join(lines).splitlines(keepends=True):
                    self._line(connection, line)
            case SendFirst(connection, line) | SendIfRead(connection, line):
                self._line(connection, line)
            case _:
                self._sort_others(effect)

    def _line(self, connection: int, line: bytes) -> None:
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        self.raw[connection].append(line)
        self.inbox[connection].append(msgspec.json.decode(line))

    def _sort_others(self, effect: Effect) -> None:
        match effect:
            case ReadStream():
                self.reads.append(effect)
            case Measure():
                self.measures.append(effect)
            case CloseConnection(connection):
                self.closed.append(connection)
            case UseRedis(path):
                self.redis = path
            case WakeAt(when):
                self.wake = when
            case Exit(code):
                self.exit = code
            case _:
                self._sort_rare(effect)

    def _sort_rare(self, effect: Effect) -> None:
        match effect:
            case Find():
                self.finds.append(effect)
            case Inspect():
                self.inspections.append(effect)
            case StopInspection(ref):
                self.stopped.append(ref)
            case SearchEngine():
                self.engine.append(effect)
            case Note():
                self.log.append(effect)
            case _:
                pass

    def sleep(self, seconds: float) -> None:
        """Time passes, with a `Woke` whenever one was asked for."""
        until = self.now + seconds
        while self.wake is not None and self.wake <= until:
            self.now = max(self.now, self.wake)
            self.wake = None
            self.event(Woke())
        self.wall += seconds
        self.now = until

    def start(self) -> None:
        self.event(Opened(GATEWAY_WRITER))
        self.event(Opened(PROJECTOR_GATEWAY))
        self.welcome()
        self.project()
        self.frames.clear()

    def welcome(self, incarnation: int = 1, instance: str = "bus", **channels: int) -> None:
        known = [
            ChannelInfo(ChannelId(number), name, kind, Seq(channels.get(name, 0)))
            for number, (name, kind) in NAMES.items()
        ]
        message = Welcome(incarnation, instance, CommitId(self.commit), known)
        self.event(Received(GATEWAY_WRITER, message))

    def project(
        self,
        *tops: ChannelTop,
        ready: bool = True,
        rebuilds: int = 0,
        boot: str = "boot",
        socket: str | None = "/run/redis.sock",
        search: str = "fts5",
    ) -> None:
        reason = "" if ready else "rebuilding"
        message = Projection(
            boot, ready, reason, rebuilds, CommitId(self.commit), socket, list(tops), search
        )
        self.event(Received(PROJECTOR_GATEWAY, message))

    def control_says(self, message: Any) -> None:
        self.event(Received(CONTROL, message))

    def stop(self) -> None:
        self.control_says(Stop())

    def oversleep(self, seconds: float) -> None:
        """The gateway's process is stopped for so long, and only then woken."""
        self.now += seconds
        self.wall += seconds
        self.wake = None
        self.event(Woke())

    def restart_writer(self, *, welcome: bool = True) -> None:
        self.event(Closed(GATEWAY_WRITER))
        self.frames.clear()
        self.event(Opened(GATEWAY_WRITER))
        if welcome:
            self.welcome()

    # ---- adapters

    def connect(self, *, greet: bool = True) -> int:
        self._connections += 1
        connection = self._connections
        self.event(Connected(connection, True))
        if greet:
            result = self.call(connection, "hello", protocol=PROTOCOL, version=__version__)
            assert result["protocol"] == PROTOCOL
        return connection

    def connect_stranger(self, connection: int) -> None:
        self.event(Connected(connection, False))

    def disconnect(self, connection: int) -> None:
        self.event(Disconnected(connection))

    def line(self, connection: int, line: bytes | Overlong) -> None:
        self.lines(connection, line)

    def lines(self, connection: int, *lines: bytes | Overlong) -> None:
        self.event(Lines(connection, lines))

    def ask(self, connection: int, method: str, **params: Any) -> int:
        self._requests += 1
        request = {"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params}
        self.line(connection, msgspec.json.encode(request))
        return self._requests

    def reply(self, connection: int, request: int) -> dict[str, Any] | None:
        """The answer to a request, which is taken out of the inbox."""
        for line in self.inbox[connection]:
            if line.get("id") == request:
                self.inbox[connection].remove(line)
                return line
        return None

    def call(self, connection: int, method: str, **params: Any) -> dict[str, Any]:
        """The result, or the error's data, of what is answered at once."""
        return self.result(connection, self.ask(connection, method, **params))

    def result(self, connection: int, request: int) -> dict[str, Any]:
        reply = self.reply(connection, request)
        assert reply is not None, "not answered"
        if "error" in reply:
            data: dict[str, Any] = reply["error"]["data"]
            return data
        result: dict[str, Any] = reply["result"]
        return result

    def notes(self, connection: int, method: str) -> list[dict[str, Any]]:
        """The params of the notifications of that method, which are taken out of the inbox."""
        found = [line for line in self.inbox[connection] if line.get("method") == method]
        self.inbox[connection] = [line for line in self.inbox[connection] if line not in found]
        return [line["params"] for line in found]

    def delivered(self, connection: int) -> list[int]:
        """The positions of the messages delivered since last asked, in the order they came."""
        notes = self.notes(connection, "deliver")
        return [message["seq"] for note in notes for message in note["messages"]]

    def attach(
        self,
        connection: int,
        session: int = 1,
        *subscriptions: SubscriptionInfo,
        **params: Any,
    ) -> str:
        """Registers; the writer agrees."""
        request = self.ask(
            connection, "register", **{"application": "x", "session": str(session), **params}
        )
        frame = self.frame(Register)
        self.outcomes(self.registered(frame, session, *subscriptions))
        attachment = self.result(connection, request)["attachment"]
        assert attachment == frame.attachment
        return str(attachment)

    def registered(
        self,
        frame: Register,
        session: int,
        *subscriptions: SubscriptionInfo,
        expired: Sequence[ExpiredInfo] = (),
    ) -> Registered:
        return Registered(
            frame.ref,
            AttachmentId(frame.attachment),
            SessionId(session),
            f"Sam{session}",
            "Sam",
            False,
            list(subscriptions),
            list(expired),
        )

    def member(self, session: int, *subscriptions: SubscriptionInfo) -> tuple[int, str]:
        """A connection with one attachment; without subscriptions given one to `general`."""
        connection = self.connect()
        chosen = subscriptions or (info(session),)
        return connection, self.attach(connection, session, *chosen)

    def send(self, connection: int, attachment: str, message_id: str = "m", **params: Any) -> int:
        given = {"channel": "general", "content": "hello", **params}
        return self.ask(connection, "send", attachment=attachment, message_id=message_id, **given)

    def flood(self) -> list[Append]:
        """Many sessions use the credit up, to the last operation."""
        members = [self.member(1000 + number) for number in range(40)]
        appends: list[Append] = []
        while len(appends) < CREDIT_OPERATIONS:
            number = len(appends)
            if number % 2000 == 0:
                self.now += 1.0
            self.send(*members[number % 40], f"flood-{number}")
            appends += self.framed(Append)
        return appends

    # ---- the daemon's processes

    def frame(self, kind: type[T]) -> T:
        """The oldest frame of that kind to the writer, which is taken out."""
        found = next(frame for frame in self.frames if isinstance(frame, kind))
        self.frames.remove(found)
        return found

    def framed(self, kind: type[T]) -> list[T]:
        """All frames of that kind, which are taken out."""
        found = [frame for frame in self.frames if isinstance(frame, kind)]
        self.frames = [frame for frame in self.frames if not isinstance(frame, kind)]
        return found

    def outcomes(self, *outcomes: Outcome, commit: int | None = None) -> None:
        commit = self.commit if commit is None else commit
        self.event(Received(GATEWAY_WRITER, Outcomes(CommitId(commit), list(outcomes))))

    def refuse(self, ref: int, code: str, text: str = "no") -> None:
        self.outcomes(Refused(ref, Failure(code, text)))

    def no_receipt(self) -> ReceiptAsk:
        """The writer does not know the operation that was asked about first."""
        asked = self.frame(ReceiptAsk)
        self.outcomes(NoReceipt(asked.ref))
        return asked

    def accept(self, *appends: Append, first: int = 1, duplicate: bool = False) -> None:
        """The writer commits these together."""
        if not duplicate:
            self.commit += 1
        self.outcomes(
            *(
                Accepted(each.ref, each.message_id, Seq(first + number), AT, duplicate)
                for number, each in enumerate(appends)
            )
        )

    def show(
        self,
        first: int,
        last: int,
        *,
        channel: int = GENERAL,
        sender: int = 900,
        padding: int = 0,
        commit: int | None = None,
    ) -> None:
        """The projector says that these positions are visible."""
        if commit is None:
            self.commit += 1
        messages = [
            VisibleMessage(ChannelId(channel), each.seq, each.session_id, each.envelope)
            for each in entries(first, last, sender=sender, padding=padding)
        ]
        frame = Visible(CommitId(self.commit if commit is None else commit), messages)
        self.event(Received(PROJECTOR_GATEWAY, frame))

    def show_nothing(self, commit: int | None = None, *tops: ChannelTop) -> None:
        """A commit without new messages is visible; it changed memories of these channels."""
        frame = Visible(CommitId(self.commit if commit is None else commit), [], list(tops))
        self.event(Received(PROJECTOR_GATEWAY, frame))

    def trim(self, *tops: ChannelTop) -> None:
        """The projector says that it has trimmed these streams."""
        self.event(Received(PROJECTOR_GATEWAY, Trimmed(list(tops))))

    def change(
        self, seq: int, revision: int = 2, *, content: bytes | None = None, editor: int = 900
    ) -> bytes:
        """The writer says that a memory was edited, or (`content` empty) deleted."""
        self.commit += 1
        body = envelope(seq, revision * 3) if content is None else content
        change = MemoryChanged(
            MEMORY,
            f"memory-{seq}",
            Seq(seq),
            revision,
            SessionId(editor),
            CommitId(self.commit),
            body or None,
        )
        self.event(Received(GATEWAY_WRITER, change))
        return body

    def index(
        self, *, ready: bool = True, commit: int = 0, reason: str = "", missing: int = 0
    ) -> None:
        """The indexer says how it is."""
        state = IndexState(ready, reason, CommitId(commit), 7, 700, missing)
        self.event(Received(GATEWAY_INDEXER, state))

    def found(self, body: bytes | None, failure: Failure | None = None) -> Find:
        """Answers the oldest look-up."""
        asked = self.finds.pop(0)
        self.event(Found(asked.ref, body, failure))
        return asked

    def inspected(self, output: bytes = b'{"decision":"allow"}', failure: str = "") -> Inspect:
        """The oldest inspection ends."""
        asked = self.inspections.pop(0)
        self.event(Inspected(asked.ref, output, failure))
        return asked

    def read(self, found: list[Entry], *, more: bool = False) -> ReadStream:
        """Answers the oldest read."""
        asked = self.reads.pop(0)
        self.event(StreamRead(asked.ref, found, more))
        return asked

    def read_all(self, stream: list[Entry]) -> None:
        """Answers reads from a whole stream for as long as there are any."""
        while self.reads:
            asked = self.reads[0]
            edge = asked.edge or 0
            found = [each for each in stream if each.seq > edge][: asked.count]
            self.read(found, more=bool(found) and found[-1] is not stream[-1])

    def fail_read(self) -> None:
        asked = self.reads.pop(0)
        failure = Failure("unavailable", "the connection to Redis was lost")
        self.event(StreamRead(asked.ref, [], False, failure))


def top(channel: int, last: int, *, count: int | None = None, oldest: int = 1) -> ChannelTop:
    held = last - oldest + 1 if count is None else count
    return ChannelTop(ChannelId(channel), held, Seq(oldest), Seq(last), AT)
