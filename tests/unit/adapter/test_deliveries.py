"""Whatever happens to deliveries, results, reports, epochs, retention and memories: nothing is lost
without a gap that counts it, shown twice, reported without having been written, or shown as it was
before a change that was known."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from agentbus.adapter.inbox import Batch, Inbox
from agentbus.wire.rpc import DeliverNote, Gap, ReviseNote, RevokeNote, Subscription

PLAIN, EVICTED, MEMORIES = STREAMS = (1, 2, 3)
LENGTH = 30
ROOM = 1 << 20

Shown = list[tuple[int, int, int, int]]
"""Subscription, place, revision (0 where there is only a gap), and how much was lost before."""


class Line:
    """A result on its way; its bytes are fixed when it is made."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.begun = False
        self.shown: Shown = [
            (
                entry.subscription,
                entry.seq,
                0 if entry.message is None else msgspec.json.decode(entry.message)["revision"],
                sum(gap.lost for gap in entry.gaps),
            )
            for entry in batch.entries
        ]


class Deliveries(RuleBasedStateMachine):
    """An inbox between a daemon with durable cursors and a harness that cancels and breaks."""

    def __init__(self) -> None:
        super().__init__()
        self.inbox = Inbox()
        self.own: dict[int, set[int]] = {number: set() for number in STREAMS}
        self.revisions: dict[int, int | None] = dict.fromkeys(range(1, LENGTH + 1), 1)
        self.boundary = 0
        self.durable = dict.fromkeys(STREAMS, 0)
        self.freed = dict.fromkeys(STREAMS, 0)
        self.pushed = dict.fromkeys(STREAMS, 0)
        self.epoch = 0
        self.lines: list[Line] = []
        self.reports: list[tuple[int, list[tuple[int, int]]]] = []
        self.shown: dict[int, list[int]] = {number: [] for number in STREAMS}
        self.lost = 0
        self.deleted: set[int] = set()
        self.attach()

    # the daemon

    def attach(self) -> None:
        subscriptions = [
            Subscription(
                subscription=number,
                channel=f"c{number}",
                position=self.durable[number],
                expires_at="t",
                include_own=False,
            )
            for number in STREAMS
        ]
        self.inbox.attach(self.name, subscriptions)
        self.begun_anew()

    def begun_anew(self) -> None:
        self.pushed, self.freed = dict(self.durable), dict(self.durable)
        self.recall(lambda line: line.batch.holds_memories)

    @property
    def name(self) -> str:
        return f"1.{self.epoch}"

    @initialize(one=st.sets(st.integers(1, LENGTH)), other=st.sets(st.integers(1, LENGTH)))
    def some_are_own(self, one: set[int], other: set[int]) -> None:
        self.own[PLAIN], self.own[EVICTED] = one, other

    @rule(number=st.sampled_from(STREAMS), count=st.integers(1, 6))
    def push(self, number: int, count: int) -> None:
        gaps = []
        if number == EVICTED and self.pushed[number] < self.boundary:
            gaps = self.bridge()
        first = self.pushed[number] + 1
        last = min(self.pushed[number] + count, LENGTH)
        theirs = [seq for seq in range(first, last + 1) if self.is_there(number, seq)]
        if first > last and not gaps:
            return
        self.pushed[number] = last
        self.inbox.deliver(
            DeliverNote(
                attachment="1.1",
                epoch=self.name,
                subscription=number,
                channel=f"c{number}",
                through=last,
                messages=[self.message(number, seq) for seq in theirs],
                gaps=gaps,
            )
        )

    def bridge(self) -> list[Gap]:
        after, self.pushed[EVICTED] = self.pushed[EVICTED], self.boundary
        lost = set(range(after + 1, self.boundary + 1)) - self.own[EVICTED]
        resumed = self.boundary + 1
        return [Gap(channel="c2", after_seq=after, resumed_at_seq=resumed, lost=len(lost))]

    def is_there(self, number: int, seq: int) -> bool:
        if number == MEMORIES and self.revisions[seq] is None:
            return False
        return seq not in self.own[number]

    def message(self, number: int, seq: int) -> msgspec.Raw:
        document: dict[str, Any] = {"seq": seq, "revision": 1}
        if number == MEMORIES:
            document |= {"memory_id": f"k{seq}", "revision": self.revisions[seq]}
        return msgspec.Raw(msgspec.json.encode(document))

    @rule(upto=st.integers(1, LENGTH - 1))
    def evict(self, upto: int) -> None:
        self.boundary = max(self.boundary, upto)

    @rule(seq=st.integers(1, LENGTH))
    def edit(self, seq: int) -> None:
        revision = self.revisions[seq]
        if revision is not None:
            self.revisions[seq] = revision + 1
            self.change(seq, ReviseNote, message=self.message(MEMORIES, seq))

    @rule(seq=st.integers(1, LENGTH))
    def delete(self, seq: int) -> None:
        if self.revisions[seq] is not None:
            self.revisions[seq] = None
            self.deleted.add(seq)
            self.change(seq, RevokeNote)

    def change(self, seq: int, kind: type[ReviseNote | RevokeNote], **more: Any) -> None:
        if not self.freed[MEMORIES] < seq <= self.pushed[MEMORIES]:
            return
        entries = self.inbox.revise(
            kind(
                attachment="1.1",
                epoch=self.name,
                subscription=MEMORIES,
                seq=seq,
                memory_id=f"k{seq}",
                **more,
            )
        )
        self.recall(lambda line: line.batch.holds(entries))

    def recall(self, is_obsolete) -> None:
        """Takes back what can still be taken back."""
        for line in [each for each in self.lines if is_obsolete(each) and not each.begun]:
            self.lines.remove(line)
            self.inbox.restore(line.batch)

    # the harness

    @rule(limit=st.integers(1, 5))
    def recv(self, limit: int) -> None:
        batch = self.inbox.take(limit, ROOM)
        if batch.entries:
            self.lines.append(Line(batch))

    @precondition(lambda self: self.lines)
    @rule(which=st.integers(0, 100))
    def begin_to_write(self, which: int) -> None:
        line = self.lines[which % len(self.lines)]
        if not line.begun:
            line.begun = True
            for subscription, seq, revision, _ in line.shown:
                assert subscription != MEMORIES or revision == self.revisions[seq]

    @precondition(lambda self: self.lines)
    @rule(which=st.integers(0, 100))
    def written(self, which: int) -> None:
        self.begin_to_write(which)
        line = self.lines.pop(which % len(self.lines))
        for subscription, seq, revision, lost in line.shown:
            self.lost += lost
            if revision:
                self.shown[subscription].append(seq)
        self.inbox.hand_off(line.batch)

    @precondition(lambda self: any(not line.begun for line in self.lines))
    @rule(which=st.integers(0, 100))
    def cancelled(self, which: int) -> None:
        lines = [line for line in self.lines if not line.begun]
        line = lines[which % len(lines)]
        self.lines.remove(line)
        self.inbox.restore(line.batch)

    # reports and epochs

    @rule()
    def report(self) -> None:
        positions = self.inbox.report()
        if positions:
            self.reports.append((self.epoch, positions))
            for number, position in positions:
                self.freed[number] = max(self.freed[number], position)
                self.pushed[number] = max(self.pushed[number], position)

    @precondition(lambda self: self.reports)
    @rule()
    def committed(self) -> None:
        epoch, positions = self.reports.pop(0)
        if epoch != self.epoch:
            self.inbox.unreport(positions)
            return
        self.commit(positions)
        self.inbox.confirm(positions)

    def commit(self, positions: list[tuple[int, int]]) -> None:
        for number, position in positions:
            self.durable[number] = max(self.durable[number], position)

    @rule()
    def rebuilt(self) -> None:
        self.epoch += 1
        self.inbox.begin(self.name)
        self.begun_anew()

    @rule(lost=st.booleans())
    def reconnected(self, lost: bool) -> None:
        self.inbox.detach()
        for _, positions in self.reports:
            if not lost:
                self.commit(positions)
        self.reports.clear()
        self.epoch += 1
        self.attach()

    # what holds

    def due(self, number: int, last: int) -> set[int]:
        gone = self.deleted if number == MEMORIES else self.own[number]
        return set(range(1, last + 1)) - gone

    @invariant()
    def nothing_is_shown_twice(self) -> None:
        for shown in self.shown.values():
            assert len(shown) == len(set(shown))

    @invariant()
    def everything_that_is_acknowledged_was_shown_or_told_as_lost(self) -> None:
        for number in (PLAIN, MEMORIES):
            assert self.due(number, self.durable[number]) <= set(self.shown[number])
        missing = self.due(EVICTED, self.durable[EVICTED]) - set(self.shown[EVICTED])
        assert all(seq <= self.boundary for seq in missing)
        assert len(missing) <= self.lost

    def teardown(self) -> None:
        while self.lines:
            self.written(0)
        while self.reports:
            self.committed()
        for number in STREAMS:
            self.push(number, LENGTH)
        while len(self.inbox):
            self.recv(5)
            while self.lines:
                self.written(0)
        self.report()
        while self.reports:
            self.committed()
        for number in STREAMS:
            assert self.durable[number] == LENGTH
        for number in (PLAIN, MEMORIES):
            assert self.due(number, LENGTH) <= set(self.shown[number])
        assert not self.own[PLAIN] & set(self.shown[PLAIN])
        missing = self.due(EVICTED, LENGTH) - set(self.shown[EVICTED])
        assert len(missing) == self.lost
        self.nothing_is_shown_twice()


TestDeliveries = Deliveries.TestCase
