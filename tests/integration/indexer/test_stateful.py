"""Whatever happens to bus and indexer, a search finds what is there, newest first."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agentbus.indexer import tidy
from agentbus.model.ports import Instant
from agentbus.search.fts5 import write
from agentbus.wire.events import TurnEnded
from agentbus.wire.links import SearchAsk, SearchFilter
from tests.integration.search.conftest import Bus, Found, Fts5

WORDS = ("apple", "pear", "plum")


class Indexing(RuleBasedStateMachine):
    """Small partitions, so that many are made, dropped and rewritten."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(write, "FULL", {"ordinary": (5, 10**6), "memory": (4, 10**6)})
        self.patch.setattr(tidy, "FEW", 3)
        self.patch.setattr(tidy, "WORTH", 2)
        self.directory = Path(tempfile.mkdtemp(prefix="ab-", dir="/tmp"))
        self.bus = Bus(self.directory)
        self.messages: list[tuple[str, str]] = []
        """Ids and contents, in the order of the bus; of memories the current revisions."""
        self.memories: list[str] = []

    @initialize()
    def start(self) -> None:
        self.index = Fts5(self.bus, self.directory)

    def teardown(self) -> None:
        self.index.close()
        self.bus.close()
        self.patch.undo()
        shutil.rmtree(self.directory)

    # ---- the bus

    @rule(words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))
    def send(self, words: list[str]) -> None:
        ids = self.bus.send_many(words)
        self.messages += zip(ids, words, strict=True)

    @rule(word=st.sampled_from(WORDS))
    def remember(self, word: str) -> None:
        memory = self.bus.send(word, "memory")
        self.memories.append(memory)
        self.messages.append((memory, word))

    @precondition(lambda self: self.memories)
    @rule(data=st.data(), word=st.sampled_from(WORDS))
    def edit(self, data: Any, word: str) -> None:
        memory = data.draw(st.sampled_from(self.memories))
        revision = self.bus.edit(memory, word)
        self._forget(memory)
        self.memories.append(revision)
        self.messages.append((revision, word))

    @precondition(lambda self: self.memories)
    @rule(data=st.data())
    def delete(self, data: Any) -> None:
        memory = data.draw(st.sampled_from(self.memories))
        self.bus.delete(memory)
        self._forget(memory)

    def _forget(self, memory: str) -> None:
        self.memories.remove(memory)
        self.messages = [message for message in self.messages if message[0] != memory]

    @rule(count=st.integers(1, 8))
    def evict(self, count: int) -> None:
        """Retention takes the oldest ordinary messages."""
        ordinary = [name for name, _ in self.messages if name not in self.memories][:count]
        self.bus.evict(*ordinary)
        self.messages = [message for message in self.messages if message[0] not in ordinary]

    # ---- the indexer

    @rule(turns=st.integers(1, 6))
    def look_after(self, turns: int) -> None:
        for _ in range(turns):
            self.index.time += 20
            self.index.core.handle(TurnEnded(), Instant(self.index.time, self.index.time))

    @rule()
    def crash(self) -> None:
        self.index.close()
        self.index = Fts5(self.bus, self.directory)

    @rule()
    def lose_the_file(self) -> None:
        self.index.close()
        (self.directory / "search.sqlite3").unlink(missing_ok=True)
        self.index = Fts5(self.bus, self.directory)

    # ---- what holds

    @invariant()
    def everything_is_found(self) -> None:
        if not hasattr(self, "index"):
            return
        self.index.follow()
        for query in ("", *WORDS):
            expected = [name for name, word in self.messages if query in ("", word)][::-1]
            for order in ("newest", "relevance"):
                found = self._find(query, order)
                assert (found if order == "newest" else sorted(found)) == (
                    expected if order == "newest" else sorted(expected)
                )

    def _find(self, query: str, order: str) -> list[str]:
        ask = SearchAsk(1, query, SearchFilter(), order, 1000, None, 0, 10**7)  # type: ignore[arg-type]
        return Found(*self.index.find(ask)).ids


TestIndexing = Indexing.TestCase
TestIndexing.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
