"""The projector's core with a model Redis, a model database and a clock that is moved by hand."""

from __future__ import annotations

from collections import deque
from typing import Any

from agentbus.mirror import keys
from agentbus.model.ports import Instant
from agentbus.projector.core import Core
from agentbus.projector.events import (
    Ask,
    Connect,
    Connected,
    Disconnect,
    Disconnected,
    Event,
    Replied,
)
from agentbus.projector.states import State
from agentbus.wire.events import Exit, Note, Opened, Received, Send, TurnEnded, WakeAt, Woke
from agentbus.wire.links import (
    CONTROL,
    PROJECTOR_GATEWAY,
    WRITER_PROJECTOR,
    Boundary,
    Evicted,
    Projection,
    RedisUp,
    WriterHello,
)
from tests.support.memory_source import MemorySource
from tests.support.model_redis import ModelRedis, Session

SOCKET = "/tmp/model.sock"


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

    def evict(self, *boundaries: Boundary, round_number: int = 1) -> None:
        """The writer has deleted what is below them, and tells."""
        self.receive(WRITER_PROJECTOR, Evicted(round_number, list(boundaries)))

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
        """Whether Redis is equal to the database."""
        found = {key: self._held(key) for key, stream in self.redis.streams.items() if stream}
        mark = self.redis.hashes.get(keys.META, {}).get(keys.COMMIT)
        expected = self.source.expected()
        return (
            found == expected
            and mark == b"%d" % self.source.newest
            and self._others() == self._expected_others()
        )

    def _held(self, key: bytes) -> list[tuple[int, bytes | None]]:
        """Positions and contents of a stream."""
        contents = self.redis.hashes.get(key.replace(b"s:", b"m:"), {})
        return [
            (seq, contents.get(fields[1]) if fields[0] == keys.MEMORY else fields[1])
            for seq, fields in self.redis.streams[key].items()
        ]

    def _others(self) -> set[bytes]:
        """Memories with contents, and documents."""
        hashes = self.redis.hashes
        memories = {name for key in hashes if key.startswith(b"m:") for name in hashes[key]}
        return memories | {key for key in hashes if key.startswith(b"d:")}

    def _expected_others(self) -> set[bytes]:
        memories = {name.encode() for name in self.source.current()}
        if not self.redis.query_engine:
            return memories
        return memories | {
            b"d:%b:%d" % (key[2:], seq)
            for key, found in self.source.expected().items()
            for seq, _ in found
        }

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
