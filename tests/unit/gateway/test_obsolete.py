"""Whatever comes in whatever order: once a change of a memory has been told, nobody is given what
the memory was before, nobody keeps it, and nobody misses a memory that is there."""

from __future__ import annotations

from collections import defaultdict

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agentbus.mirror.read import Entry
from agentbus.model.ids import CommitId, Seq, SessionId
from agentbus.wire.events import Received
from agentbus.wire.links import (
    GATEWAY_WRITER,
    PROJECTOR_GATEWAY,
    MemoryChanged,
    Visible,
    VisibleMessage,
)
from tests.support.gateway_rig import AT, MEMORY, Rig, info, top

FOLLOWERS = (1, 2)


class Memory:
    """Its contents by commit; None from the one on that deleted it."""

    def __init__(self, seq: int, author: int, commit: int, content: str) -> None:
        self.seq = seq
        self.author = author
        self.contents: dict[int, str | None] = {commit: content}

    def at(self, commit: int) -> str | None:
        """As it was after a commit."""
        return [text for at, text in self.contents.items() if at <= commit][-1]

    @property
    def now(self) -> str | None:
        return list(self.contents.values())[-1]

    @property
    def born(self) -> int:
        return next(iter(self.contents))

    @property
    def changed_by(self) -> int:
        return next(reversed(self.contents))


def envelope(seq: int, content: str) -> bytes:
    return b'{"seq":%d,"sent_at":"%b","content":"%b"}' % (seq, AT.encode(), content.encode())


class Bus(RuleBasedStateMachine):
    """A database, Redis somewhere behind it, and two followers with small windows."""

    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig(prefetch_messages=3)
        self.members = {
            number: self.rig.member(number, info(number, MEMORY)) for number in FOLLOWERS
        }
        self.memories: list[Memory] = []
        self.commit = 0
        self.redis = 0
        self.held: dict[int, dict[int, str]] = defaultdict(dict)
        self.seen: dict[int, set[int]] = defaultdict(set)
        self.through: dict[int, int] = dict.fromkeys(FOLLOWERS, 0)
        self.found: dict[int, tuple[list[Entry], bool]] = {}
        self.untold: list[MemoryChanged] = []
        """What a writer that died has not told; its successor will."""

        self.told: list[MemoryChanged] = []

    @property
    def visible(self) -> int:
        """How many memories there are in Redis."""
        born = [each for each in self.memories if each.born <= self.redis]
        return sum(each.at(self.redis) is not None for each in born)

    # ---- the database

    @rule(author=st.sampled_from([1, 2, 900]))
    def a_memory_is_created(self, author: int) -> None:
        self.commit += 1
        seq = len(self.memories) + 1
        self.memories.append(Memory(seq, author, self.commit, f"{seq}.1"))

    @precondition(lambda self: any(memory.now for memory in self.memories))
    @rule(data=st.data(), deleted=st.booleans(), told=st.booleans())
    def a_memory_is_changed(self, data: st.DataObject, deleted: bool, told: bool) -> None:
        """The writer may die before it has told of it."""
        self.the_successor_tells()
        memory = data.draw(st.sampled_from([each for each in self.memories if each.now]))
        self.commit += 1
        revision = len(memory.contents) + 1
        memory.contents[self.commit] = None if deleted else f"{memory.seq}.{revision}"
        body = None if memory.now is None else envelope(memory.seq, memory.now)
        change = MemoryChanged(
            MEMORY,
            f"k{memory.seq}",
            Seq(memory.seq),
            revision,
            SessionId(900),
            CommitId(self.commit),
            body,
        )
        self.untold.append(change)
        if told:
            self.the_successor_tells()
        else:
            self.rig.commit = self.commit
            self.rig.restart_writer()

    @precondition(lambda self: self.untold)
    @rule()
    def the_successor_tells(self) -> None:
        self.collect()
        for change in self.untold:
            self.rig.event(Received(GATEWAY_WRITER, change))
        self.told += self.untold
        self.untold.clear()

    # ---- Redis

    @precondition(lambda self: self.redis < self.commit)
    @rule(data=st.data())
    def redis_follows(self, data: st.DataObject) -> None:
        self.follow(data.draw(st.integers(self.redis + 1, self.commit)))

    @precondition(lambda self: self.told)
    @rule(data=st.data())
    def somebody_asks_again(self, data: st.DataObject) -> None:
        """And is told by the newest commit what was changed with an earlier one."""
        self.collect()
        change = data.draw(st.sampled_from(self.told))
        if self.memories[change.seq - 1].changed_by == change.commit_id:
            again = msgspec.structs.replace(change, commit_id=CommitId(self.commit))
            self.rig.event(Received(GATEWAY_WRITER, again))

    def follow(self, commit: int) -> None:
        before, self.redis = self.redis, commit
        changed = any(before < each.changed_by <= commit for each in self.memories)
        born = sum(each.born <= commit for each in self.memories)
        held = [top(MEMORY, born, count=self.visible)] if changed else []
        messages = [
            VisibleMessage(MEMORY, Seq(each.seq), SessionId(each.author), body)
            for each in self.memories
            if before < each.born <= self.redis and (body := self.in_redis(each)) is not None
        ]
        frame = Visible(CommitId(self.redis), messages, held)
        self.rig.event(Received(PROJECTOR_GATEWAY, frame))

    def in_redis(self, memory: Memory) -> bytes | None:
        content = memory.at(self.redis)
        return None if content is None else envelope(memory.seq, content)

    @precondition(lambda self: self.rig.reads)
    @rule()
    def redis_carries_out_its_reads(self) -> None:
        """The replies are on their way from now on."""
        for asked in self.rig.reads:
            if asked.ref not in self.found:
                there = [
                    Entry(Seq(each.seq), SessionId(each.author), body)
                    for each in self.memories
                    if each.born <= self.redis
                    and each.seq > (asked.edge or 0)
                    and (body := self.in_redis(each)) is not None
                ]
                self.found[asked.ref] = (there[: asked.count], len(there) > asked.count)

    @precondition(lambda self: self.rig.reads and self.rig.reads[0].ref in self.found)
    @rule()
    def a_reply_arrives(self) -> None:
        entries, more = self.found.pop(self.rig.reads[0].ref)
        self.rig.read(entries, more=more)

    # ---- followers

    @rule(number=st.sampled_from(FOLLOWERS))
    def a_follower_reports(self, number: int) -> None:
        self.collect()
        connection, attachment = self.members[number]
        position = self.through[number]
        positions = [[number, position]]
        self.rig.ask(
            connection, "delivered", attachment=attachment, epoch="1.0", positions=positions
        )
        held = self.held[number]
        self.held[number] = {seq: text for seq, text in held.items() if seq > position}

    @rule()
    def a_moment_passes(self) -> None:
        self.rig.sleep(0.2)

    def collect(self) -> None:
        for number, (connection, _) in self.members.items():
            for line in self.rig.inbox.pop(connection, []):
                self.take(number, line.get("method"), line.get("params"))

    def take(self, number: int, method: str | None, params: dict) -> None:
        if method == "deliver":
            for message in params["messages"]:
                self.require_current(message["seq"], message["content"])
                assert message["seq"] not in self.seen[number], "came twice"
                self.seen[number].add(message["seq"])
                self.held[number][message["seq"]] = message["content"]
            self.through[number] = params["through"]
        elif method == "revise" and params["seq"] in self.held[number]:
            self.held[number][params["seq"]] = params["message"]["content"]
        elif method == "revoke":
            self.held[number].pop(params["seq"], None)

    # ---- what holds

    @invariant()
    def as_many_are_counted_as_there_are(self) -> None:
        assert self.rig.core._parts.channels.by_id(MEMORY).messages == self.visible

    @invariant()
    def nobody_holds_what_a_memory_was(self) -> None:
        self.collect()
        for held in self.held.values():
            for seq, content in held.items():
                self.require_current(seq, content)

    def require_current(self, seq: int, content: str) -> None:
        """Nobody has an answer to a change that was not told, so nobody can miss it."""
        untold = any(change.seq == seq for change in self.untold)
        assert untold or content == self.memories[seq - 1].now

    def teardown(self) -> None:
        self.the_successor_tells()
        for _ in range(4 * len(self.memories) + 8):
            for number in FOLLOWERS:
                self.a_follower_reports(number)
            if self.redis < self.commit:
                self.follow(self.commit)
            self.redis_carries_out_its_reads()
            while self.rig.reads and self.rig.reads[0].ref in self.found:
                self.a_reply_arrives()
            self.a_moment_passes()
            self.nobody_holds_what_a_memory_was()
        for number in FOLLOWERS:
            there = {each.seq for each in self.memories if each.now and each.author != number}
            assert there <= self.seen[number]


TestBus = Bus.TestCase
TestBus.settings = settings(stateful_step_count=40)
