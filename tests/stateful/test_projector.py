"""Whatever happens in whatever order, the mirror ends equal to the database, and what the gateway
was told on the way is a sequence it can follow."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agentbus.projector.states import State
from agentbus.wire.events import Opened
from agentbus.wire.links import (
    CONTROL,
    PROJECTOR_GATEWAY,
    WRITER_PROJECTOR,
    Applied,
    Projection,
    Readiness,
    RedisDown,
    Visible,
)
from tests.support.projector_world import World

channels = st.lists(st.integers(1, 3), min_size=1, max_size=4)


class Gateway:
    """What a gateway concludes from what it is told; fails where it would go wrong."""

    def __init__(self) -> None:
        self.epoch = ("", 0)
        self.tops: dict[int, int] = {}
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
                assert shown.seq == self.tops.get(shown.channel_id, 0) + 1
                self.tops[shown.channel_id] = shown.seq

    def _start(self, projection: Projection) -> None:
        assert projection.socket_path
        tops: dict[int, int] = {top.channel_id: top.top for top in projection.channels}
        epoch = (projection.boot, projection.rebuilds)
        if projection.rebuilds and epoch != self.epoch:
            self.epoch = epoch
        else:  # the streams go on from what they were
            assert projection.commit_id >= self.commit_id
            assert all(tops[channel] >= top for channel, top in self.tops.items())
        self.tops, self.commit_id = tops, projection.commit_id


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
        self.world.open_links()

    @rule(channels=channels, text=st.text(max_size=3))
    def commit(self, channels: list[int], text: str) -> None:
        if self.greeted:
            self.world.commit(*channels, text=text)
        else:
            self.world.source.commit(*channels, text=text)

    @rule(channels=channels)
    def commit_that_is_never_told(self, channels: list[int]) -> None:
        self.world.source.commit(*channels)
        self.greeted = False

    @rule()
    def writer_restarts(self) -> None:
        self.world.happen(Opened(WRITER_PROJECTOR))
        self.world.greet()
        self.greeted = True

    @rule()
    def gateway_restarts(self) -> None:
        self.gateway = Gateway()
        self.read = len(self.world.sent)
        self.world.happen(Opened(PROJECTOR_GATEWAY))

    @rule()
    def projector_restarts(self) -> None:
        self.world.reboot()
        self.greeted = False
        if self.up:
            self.world.redis_up()

    @precondition(lambda self: not self.up)
    @rule()
    def redis_starts(self) -> None:
        self.pid += 1
        self.world.redis.restart(self.pid)
        self.world.reachable = self.up = True
        self.world.redis_up()

    @precondition(lambda self: self.up)
    @rule(told=st.booleans())
    def redis_dies(self, told: bool) -> None:
        self.up = self.world.reachable = False
        self.world.cut()
        if told:
            self.world.receive(CONTROL, RedisDown("killed"))

    @precondition(lambda self: self.up)
    @rule()
    def connection_breaks(self) -> None:
        self.world.cut()

    @rule()
    def somebody_flushes(self) -> None:
        self.world.redis.run((b"FLUSHALL",))

    @rule()
    def snapshot(self) -> None:
        self.world.redis.run((b"SAVE",))

    @rule(name=st.sampled_from([b"XADD", b"HSET", b"FLUSHALL"]), skip=st.integers(0, 5))
    def a_command_is_refused(self, name: bytes, skip: int) -> None:
        self.world.redis.refuse(name, skip=skip)

    @rule(steps=st.integers(1, 6))
    def some_steps(self, steps: int) -> None:
        for _ in range(steps):
            self.world.step()

    @rule(seconds=st.floats(0, 5))
    def time_passes(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    @invariant()
    def gateway_can_follow(self) -> None:
        for link, message in self.world.sent[self.read :]:
            if link == PROJECTOR_GATEWAY:
                self.gateway.take(message)
        self.read = len(self.world.sent)

    @invariant()
    def nothing_is_applied_that_is_not_committed(self) -> None:
        applied = self.world.told(Applied)
        assert not applied or applied[-1].commit_id <= self.world.source.newest

    def teardown(self) -> None:
        world = self.world
        world.redis.refusals.clear()
        if not self.up:
            self.redis_starts()
        self.writer_restarts()
        world.settle()
        world.pass_time(60)
        assert world.state is State.READY
        assert world.is_mirrored()
        assert world.told(Readiness)[-1].ready
        self.gateway_can_follow()
        assert self.gateway.ready


TestProjecting = Projecting.TestCase
