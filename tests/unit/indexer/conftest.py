"""An indexer's core between doubles of both databases, with a clock that is moved by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest

from agentbus.indexer.core import Core
from agentbus.indexer.events import Search, Searched
from agentbus.model.ids import ChannelId, CommitId, Seq, SessionId
from agentbus.model.message import Message, encode_envelope
from agentbus.model.ports import Instant
from agentbus.search.document import Document
from agentbus.search.fts5.schema import Mark, Partition
from agentbus.store.read import Chunk, Head
from agentbus.wire.events import Opened, Received, Send, TurnEnded, WakeAt, Woke
from agentbus.wire.links import (
    GATEWAY_INDEXER,
    IndexState,
    RowInserted,
    SearchAsk,
    SearchFilter,
    SearchFound,
)


class FakeSource:
    """A bus whose commits have one row each."""

    def __init__(self) -> None:
        self.instance = "bus"
        self.newest = 0
        self.purge_floor = 0
        self.error: Exception | None = None
        self.reads = 0
        self.memories: dict[int, bool] = {}
        """Rows of memories; whether they are current."""

    def _check(self) -> None:
        if self.error is not None:
            raise self.error

    def reopen(self) -> None:
        pass

    def head(self) -> Head:
        self._check()
        return Head(self.instance, 1, CommitId(self.newest), CommitId(self.purge_floor))

    def rows_after(self, commit_id: CommitId, limit_rows: int, limit_bytes: int) -> Chunk | None:
        self._check()
        self.reads += 1
        if self.newest <= commit_id:
            return None
        last = min(self.newest, commit_id + 2)
        return Chunk([self.row(n) for n in range(commit_id + 1, last + 1)], CommitId(last))

    def row(self, number: int) -> RowInserted:
        message = Message(
            f"m{number}", number, "general", "Sam", "Sam", "a", "s", "2026-11-30", "t", "x", "m"
        )
        envelope = encode_envelope(message) if number != 13 else b"not JSON"
        memory_id = "mem" if number in self.memories else None
        return RowInserted(
            ChannelId(1), Seq(number), SessionId(1), envelope, memory_id, None, number
        )

    def has_messages(self, first: int, last: int) -> bool:
        self._check()
        return self.purge_floor < last

    def count_memories(self, first: int, last: int) -> int:
        return len(self.memory_rows(first, last))

    def memory_rows(self, first: int, last: int) -> list[RowInserted]:
        numbers = sorted(number for number, current in self.memories.items() if current)
        return [self.row(number) for number in numbers if first <= number <= last]


class FakeIndex:
    """An index that keeps what it is given."""

    def __init__(self) -> None:
        self.mark: Mark | None = None
        self.ids: list[int] = []
        self.partitions: list[Partition] = []
        self.error: Exception | None = None
        self.log: list[Any] = []

    def _check(self) -> None:
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    @property
    def documents(self) -> int:
        return len(self.ids)

    @property
    def text_bytes(self) -> int:
        return 10 * len(self.ids)

    def open(self) -> Mark | None:
        self._check()
        return self.mark

    def put_aside(self) -> None:
        self.log.append("put aside")
        self.mark, self.ids = None, []

    def begin(self, mark: Mark) -> None:
        self.mark, self.ids = mark, []

    def add(self, documents: Iterable[Document], commit_id: int) -> None:
        self._check()
        assert self.mark is not None
        self.ids += [document.id for document in documents]
        self.mark = Mark(self.mark.instance, self.mark.schema, commit_id)

    def drop(self, partition: Partition) -> None:
        self.log.append(("drop", partition.number))
        self.partitions.remove(partition)

    def rewrite(self, partitions: Sequence[Partition], documents: Sequence[Document]) -> None:
        self.log.append(("rewrite", [p.number for p in partitions], [d.id for d in documents]))
        for partition in partitions:
            self.partitions.remove(partition)


class Rig:
    """The core, what it said, and when it wants to be woken."""

    def __init__(self) -> None:
        self.source = FakeSource()
        self.index = FakeIndex()
        self.time = 100.0
        self.effects: list[Any] = []
        self.woken_at: float | None = None
        self.numbers: dict[int, int] = {}
        self.core = Core(self.source, self.source, self.index)

    def restart(self) -> None:
        self.core = Core(self.source, self.source, self.index)

    def handle(self, event: Any) -> None:
        for effect in self.core.handle(event, Instant(self.time, self.time)):
            if isinstance(effect, WakeAt):
                self.woken_at = effect.when
            else:
                self.effects.append(effect)

    def tell(self, *messages: msgspec.Struct) -> None:
        for message in messages:
            self.handle(Received(GATEWAY_INDEXER, message))
        self.handle(TurnEnded())

    def wake(self) -> None:
        assert self.woken_at is not None
        self.time, self.woken_at = max(self.time, self.woken_at), None
        self.handle(Woke())

    def run(self, seconds: float) -> None:
        """Lets time pass."""
        end = self.time + seconds
        while self.woken_at is not None and self.woken_at <= end:
            self.wake()
        self.time = end

    def start(self) -> None:
        self.handle(Opened(GATEWAY_INDEXER))
        self.run(1)

    def take(self, kind: type[Any]) -> list[Any]:
        """Effects, or messages to the gateway, of a kind, since the last time."""
        found, rest = [], []
        for effect in self.effects:
            subject = effect.message if isinstance(effect, Send) else effect
            (found if isinstance(subject, kind) else rest).append(effect)
        self.effects = rest
        return [effect.message if isinstance(effect, Send) else effect for effect in found]

    def states(self) -> list[tuple[bool, int]]:
        return [(state.ready, state.commit_id) for state in self.take(IndexState)]

    def ask(self, ref: int, after_commit: int = 0) -> None:
        self.tell(ask(ref, after_commit))

    def searches(self) -> list[int]:
        begun = self.take(Search)
        self.numbers |= {search.ask.ref: search.number for search in begun}
        return [search.ask.ref for search in begun]

    def ended(self, ref: int, **more: str) -> None:
        """The search that was begun last for this ref."""
        self.searches()
        self.handle(Searched(self.numbers[ref], SearchFound(ref, [], None), **more))


def ask(ref: int, after_commit: int = 0) -> SearchAsk:
    return SearchAsk(ref, "x", SearchFilter(), "newest", 10, None, CommitId(after_commit), 1000)


@pytest.fixture
def rig() -> Rig:
    return Rig()
