"""The projector's core with a model Redis, a model database and a clock that is moved by hand."""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from agentbus.mirror import keys
from agentbus.model.ids import ChannelId, CommitId, Seq, SessionId
from agentbus.model.ports import Instant
from agentbus.projector.core import Core
from agentbus.projector.events import (
    Ask,
    Connect,
    Connected,
    Disconnect,
    Disconnected,
    Event,
    Note,
    Replied,
)
from agentbus.projector.states import State
from agentbus.store.read import Chunk, Head
from agentbus.wire.events import Exit, Opened, Received, Send, TurnEnded, WakeAt, Woke
from agentbus.wire.links import (
    CONTROL,
    PROJECTOR_GATEWAY,
    WRITER_PROJECTOR,
    Committed,
    Projection,
    RedisUp,
    RowInserted,
    WriterHello,
)
from tests.support.model_redis import ModelRedis, Session

SOCKET = "/tmp/model.sock"


def envelope(text: str) -> bytes:
    """As much of one as the projector looks at."""
    return msgspec.json.encode({"content": text, "sent_at": f"2026-11-30T16:40:27.{len(text):03}Z"})


class MemorySource:
    """The database: commits in order, each with its rows."""

    def __init__(self) -> None:
        self.instance = "bus-1"
        self.schema = 1
        self.purge_floor = CommitId(0)
        self.commits: list[list[RowInserted]] = []
        self.empty_channels: list[ChannelId] = []
        self.error: Exception | None = None
        self.opened = 0
        self.closed = False

    @property
    def newest(self) -> CommitId:
        """Number of the last commit."""
        return CommitId(len(self.commits))

    def commit(self, *channels: int, text: str = "x", session: int = 7) -> Committed:
        """One message in each of these channels, as the writer would tell of it."""
        rows: list[RowInserted] = []
        for channel in map(ChannelId, channels):
            there = [row for rows_ in (*self.commits, rows) for row in rows_]
            seq = Seq(1 + max((row.seq for row in there if row.channel_id == channel), default=0))
            rows.append(RowInserted(channel, seq, SessionId(session), envelope(text)))
        self.commits.append(rows)
        return Committed(CommitId(self.newest - 1), self.newest, rows)

    def expected(self) -> dict[bytes, list[tuple[int, bytes]]]:
        """What the streams must hold."""
        streams: dict[bytes, list[tuple[int, bytes]]] = {}
        for rows in self.commits:
            for row in rows:
                key = keys.stream(row.channel_id)
                streams.setdefault(key, []).append((row.seq, row.envelope))
        return streams

    def reopen(self) -> None:
        """Counts."""
        self.opened += 1

    def close(self) -> None:
        """Remembers."""
        self.closed = True

    def head(self) -> Head:
        """As `Source`."""
        self._fail()
        return Head(self.instance, self.schema, self.newest, self.purge_floor)

    def rows_after(self, commit_id: CommitId, limit_rows: int, limit_bytes: int) -> Chunk | None:
        """As `Source`."""
        self._fail()
        if commit_id >= self.newest:
            return None
        rows: list[RowInserted] = []
        for number, added in enumerate(self.commits[commit_id:], start=commit_id):
            if rows and len(rows) + len(added) > limit_rows:
                return Chunk(rows, CommitId(number))
            rows = [*rows, *added]
        return Chunk(rows, self.newest)

    def channels(self) -> list[ChannelId]:
        """As `Source`."""
        self._fail()
        found = {row.channel_id for rows in self.commits for row in rows}
        return sorted(found.union(self.empty_channels))

    def channel_rows(
        self, channel: ChannelId, position: Seq, up_to: CommitId, limit_rows: int, limit_bytes: int
    ) -> list[RowInserted]:
        """As `Source`."""
        self._fail()
        rows = (row for rows in self.commits[:up_to] for row in rows)
        return [row for row in rows if row.channel_id == channel and row.seq > position][
            :limit_rows
        ]

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


class World:
    """Carries the core's effects out; what follows from them waits in `following`."""

    def __init__(self, source: MemorySource | None = None, redis: ModelRedis | None = None) -> None:
        self.source = source or MemorySource()
        self.redis = redis or ModelRedis()
        self.boots = 1
        self.core = Core(self.source, "boot-1")
        self.time = 1000.0
        self.wake_at: float | None = None
        self.following: deque[Event] = deque()
        self.sent: list[tuple[str, Any]] = []
        self.notes: list[Note] = []
        self.exit_code: int | None = None
        self.reachable = True
        self.mute = False
        self._sessions: dict[int, Session] = {}

    # ---- what happens

    def start(self) -> World:
        """Links, a server and a writer, and everything that follows."""
        self.open_links()
        self.redis_up()
        self.greet()
        return self.settle()

    def open_links(self) -> None:
        """Both."""
        self.happen(Opened(WRITER_PROJECTOR))
        self.happen(Opened(PROJECTOR_GATEWAY))

    def reboot(self) -> None:
        """The process is killed and another one starts; links and server are still to come."""
        self.boots += 1
        self.core = Core(self.source, f"boot-{self.boots}")
        self.wake_at = None
        self.following.clear()
        self._sessions.clear()
        self.open_links()

    def redis_up(self) -> None:
        """The supervisor announces the server."""
        self.receive(CONTROL, RedisUp(SOCKET, self.redis.pid, "valkey-server", "9.1.2"))

    def greet(self) -> None:
        """A writer that has just come."""
        self.receive(WRITER_PROJECTOR, WriterHello(self.source.instance, self.source.newest))

    def commit(self, *channels: int, text: str = "x") -> None:
        """The writer commits and tells."""
        self.receive(WRITER_PROJECTOR, self.source.commit(*channels, text=text))

    def receive(self, link: str, *messages: Any) -> None:
        """These messages, in one turn."""
        for message in messages:
            self.happen(Received(link, message))
        self.happen(TurnEnded())

    def happen(self, event: Event) -> None:
        """One event, and its effects."""
        for effect in self.core.handle(event, Instant(self.time, 1.7e9 + self.time)):
            self._perform(effect)

    def step(self) -> bool:
        """The next thing that follows; False: nothing does."""
        if self.following:
            self.happen(self.following.popleft())
            return True
        return False

    def settle(self) -> World:
        """All that follows without time passing."""
        while self.step():
            pass
        return self

    def pass_time(self, seconds: float) -> World:
        """Time passes, alarms ring, and what follows from them happens."""
        end = self.time + seconds
        self.settle()
        while self.wake_at is not None and self.wake_at <= end:
            self.time, self.wake_at = max(self.time, self.wake_at), None
            self.happen(Woke())
            self.settle()
        self.time = end
        return self

    def cut(self, reason: str = "the connection to Redis was lost") -> None:
        """All connections end; what was asked and not yet answered never is."""
        self.following.clear()
        for number in list(self._sessions):
            del self._sessions[number]
            self.happen(Disconnected(number, reason))

    # ---- what is seen

    @property
    def state(self) -> State:
        """Of the projection."""
        return self.core.state

    @property
    def projection(self) -> Projection:
        """The last one the gateway was told of."""
        return self.told(Projection)[-1]

    def told(self, kind: type[Any]) -> list[Any]:
        """All messages of this kind that were sent."""
        return [message for _, message in self.sent if type(message) is kind]

    def is_mirrored(self) -> bool:
        """Whether the streams are equal to the database."""
        expected = self.source.expected()
        found = {key: self.redis.envelopes(key) for key in self.redis.streams}
        mark = self.redis.hashes.get(keys.META, {}).get(keys.COMMIT)
        return found == expected and mark == b"%d" % self.source.newest

    # ---- effects

    def _perform(self, effect: Any) -> None:
        match effect:
            case Send(link, message):
                self.sent.append((link, message))
            case WakeAt(when):
                self.wake_at = when
            case Exit(code):
                self.exit_code = code
            case Note():
                self.notes.append(effect)
            case Connect(number, _):
                self._connect(number)
            case Disconnect(number):
                self._sessions.pop(number, None)
            case Ask(number, commands):
                session = self._sessions[number]
                if not self.mute:
                    self.following.append(Replied(number, session.run_all(commands)))

    def _connect(self, number: int) -> None:
        if self.reachable:
            self._sessions[number] = self.redis.connect()
            self.following.append(Connected(number))
        else:
            self.following.append(Disconnected(number, "Redis cannot be reached"))
