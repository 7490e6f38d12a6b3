"""Whatever happens in whatever order, the mirror ends equal to the database, and what the gateway
was told on the way is a sequence it can follow."""

from __future__ import annotations

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from agentbus.model.ids import ChannelId
from agentbus.projector.states import State
from agentbus.wire.events import Opened
from agentbus.wire.links import (
    CONTROL,
    PROJECTOR_GATEWAY,
    WRITER_PROJECTOR,
    Applied,
    ChannelTop,
    Evicted,
    Measured,
    Projection,
    Readiness,
    RedisDown,
    Trimmed,
    Visible,
    VisibleMessage,
)
from tests.support.memory_source import MEMORY_CHANNELS
from tests.support.projector_world import World

REFUSED = [b"XADD", b"FLUSHALL", b"EXEC", b"XDEL", b"HDEL", b"XTRIM"]
"""Not HSET: within a transaction no server refuses it alone, and nobody could tell afterwards."""

TROUBLES = {
    "connection_breaks",
    "gateway_restarts",
    "projector_restarts",
    "purge",
    "redis_dies",
    "redis_restarts",
    "redis_starts",
    "somebody_flushes",
    "writer_restarts",
}
mostly = st.sampled_from([True, True, True, False])
channels = st.lists(st.integers(1, 3) | st.integers(50, 51), min_size=1, max_size=4)
changes = st.lists(
    st.tuples(st.sampled_from(["add", "edit", "edit", "delete"]), st.integers(0, 99)),
    min_size=1,
    max_size=4,
)


class Gateway:
    """What a gateway concludes from what it is told; fails where it would go wrong."""

    def __init__(self) -> None:
        self.epoch = ("", 0)
        self.tops: dict[int, int] = {}
        self.oldest: dict[int, int] = {}
        self.counts: Counter[int] = Counter()
        self.ready = False
        self.commit_id = 0

    def take(self, message: object) -> None:
        if isinstance(message, Projection):
            self.ready = message.ready
            assert bool(message.reason) != message.ready
            if message.ready:
                self._start(message)
        elif isinstance(message, Visible) and self.ready:
            assert message.commit_id > self.commit_id
            self.commit_id = message.commit_id
            for shown in message.messages:
                self._show(shown)
            self._count(message.channels)
        elif isinstance(message, Trimmed) and self.ready:
            for top in message.channels:
                assert top.oldest > self.oldest.get(top.channel_id, 0)
                assert top.top >= self.tops[top.channel_id]
                self.oldest[top.channel_id] = top.oldest
            self._count(message.channels)

    def _count(self, tops: list[ChannelTop]) -> None:
        for top in tops:
            self.counts[top.channel_id] = top.count

    def _show(self, shown: VisibleMessage) -> None:
        top = self.tops.get(shown.channel_id, 0)
        if shown.channel_id in MEMORY_CHANNELS:
            assert shown.seq > top
            assert shown.memory_id
        else:
            assert shown.seq == top + 1
        self.tops[shown.channel_id] = shown.seq
        self.counts[shown.channel_id] += 1

    def _start(self, projection: Projection) -> None:
        assert projection.socket_path
        tops: dict[int, int] = {top.channel_id: top.top for top in projection.channels}
        ordinary = [top for top in projection.channels if top.channel_id not in MEMORY_CHANNELS]
        assert all(top.count == top.top - top.oldest + 1 for top in ordinary if top.oldest)
        self.oldest = {top.channel_id: top.oldest for top in ordinary}
        epoch = (projection.boot, projection.rebuilds)
        if projection.rebuilds and epoch != self.epoch:
            self.epoch = epoch
        else:  # the streams go on from what they were
            assert projection.commit_id >= self.commit_id
            assert all(
                tops[channel] >= top
                for channel, top in self.tops.items()
                if channel not in MEMORY_CHANNELS
            )
        self.tops, self.commit_id = tops, projection.commit_id
        self.counts.clear()
        self._count(projection.channels)


class Projecting(RuleBasedStateMachine):
    """The world around the core; the writer tells of commits only while it is connected."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.gateway = Gateway()
        self.read = 0
        self.pid = self.world.redis.pid
        self.greeted = False
        self.up = False
        self.rounds = 0
        self.world.open_links()

    @initialize(engine=st.booleans())
    def begin(self, engine: bool) -> None:
        self.world.redis.query_engine = engine
        self.redis_starts()
        self.writer_restarts()

    def _tell(self, message: object, *, told: bool) -> None:
        if told and self.greeted:
            self.world.receive(WRITER_PROJECTOR, message)
        else:
            self.greeted = False

    @rule(channels=channels, text=st.text(max_size=3), told=mostly)
    def commit(self, channels: list[int], text: str, told: bool) -> None:
        self._tell(self.world.source.commit(*channels, text=text), told=told)

    @precondition(lambda self: self.world.source.current())
    @rule(asked=changes, told=mostly)
    def memories_change(self, asked: list[tuple[str, int]], told: bool) -> None:
        names = sorted(self.world.source.current())
        operations = [
            (name, 50 if name == "add" else names[number % len(names)]) for name, number in asked
        ]
        self._tell(self.world.source.transact(operations), told=told)

    @rule(channel=st.integers(1, 3), count=st.integers(0, 5), told=mostly)
    def evict(self, channel: int, count: int, told: bool) -> None:
        source = self.world.source
        begins = source.oldest.get(ChannelId(channel), 1)
        self.rounds += 1
        self._tell(Evicted(self.rounds, [source.evict(channel, begins + count)]), told=told)

    @rule(steps=st.integers(1, 6))
    def some_steps(self, steps: int) -> None:
        for _ in range(steps):
            self.world.step()

    @rule(seconds=st.floats(0, 5))
    def time_passes(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    @rule()
    def snapshot(self) -> None:
        self.world.redis.run((b"SAVE",))

    @rule()
    def calm(self) -> None:
        """All that was told has come to its end."""
        self.world.redis.refusals.clear()
        self.world.pass_time(3)
        if self.greeted and self.world.state is State.READY:
            assert self.world.is_mirrored()
            self.gateway_can_follow()
            self.gateway_counts_what_there_is()

    def gateway_counts_what_there_is(self) -> None:
        expected = self.world.source.expected()
        held = {int(key.removeprefix(b"s:")): len(entries) for key, entries in expected.items()}
        assert {channel: count for channel, count in self.gateway.counts.items() if count} == held

    @rule(name=st.sampled_from(REFUSED), skip=st.integers(0, 5))
    def a_command_is_refused(self, name: bytes, skip: int) -> None:
        self.world.redis.refuse(name, skip=skip)

    @precondition(lambda self: self.world.source.current())
    @rule(skip=st.integers(0, 1))
    def the_projector_dies_before_it_reads_a_refusal(self, skip: int) -> None:
        """Of a transaction; Redis may carry out those behind it all the same."""
        self.world.settle()
        self.world.redis.refuse(b"EXEC", skip=skip)
        for name in sorted(self.world.source.current())[:3]:
            self._tell(self.world.source.edit(name), told=True)
        self.world.redis.refusals.clear()
        self.projector_restarts()

    @rule(kind=st.sampled_from(sorted(TROUBLES)))
    def trouble(self, kind: str) -> None:
        getattr(self, kind)()

    def purge(self) -> None:
        self.world.source.purge()

    def writer_restarts(self) -> None:
        self.world.happen(Opened(WRITER_PROJECTOR))
        self.world.greet()
        self.greeted = True

    def gateway_restarts(self) -> None:
        self.gateway = Gateway()
        self.read = len(self.world.sent)
        self.world.happen(Opened(PROJECTOR_GATEWAY))

    def projector_restarts(self) -> None:
        self.world.reboot()
        if self.up:
            self.world.redis_up()
        self.world.greet()
        self.greeted = True

    def redis_restarts(self) -> None:
        self.redis_dies()
        self.world.receive(CONTROL, RedisDown("killed"))
        self.redis_starts()

    def redis_starts(self) -> None:
        if not self.up:
            self.pid += 1
            self.world.redis.restart(self.pid)
            self.world.reachable = self.up = True
            self.world.redis_up()

    def redis_dies(self) -> None:
        self.up = self.world.reachable = False
        self.world.cut()

    def connection_breaks(self) -> None:
        self.world.cut()

    def somebody_flushes(self) -> None:
        self.world.redis.run((b"FLUSHALL",))

    @invariant()
    def gateway_can_follow(self) -> None:
        for link, message in self.world.sent[self.read :]:
            if link == PROJECTOR_GATEWAY:
                self.gateway.take(message)
        self.read = len(self.world.sent)

    @invariant()
    def every_measure_is_told_once(self) -> None:
        told = [measured.round for measured in self.world.told(Measured)]
        assert told == sorted(set(told))

    @invariant()
    def nothing_is_applied_that_is_not_committed(self) -> None:
        applied = self.world.told(Applied)
        assert not applied or applied[-1].commit_id <= self.world.source.newest

    def teardown(self) -> None:
        world = self.world
        world.redis.refusals.clear()
        self.redis_starts()
        self.writer_restarts()
        world.settle()
        world.pass_time(60)
        assert world.state is State.READY
        assert world.is_mirrored()
        assert world.told(Readiness)[-1].ready
        self.gateway_can_follow()
        assert self.gateway.ready
        self.gateway_counts_what_there_is()


TestProjecting = Projecting.TestCase
