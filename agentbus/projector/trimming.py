"""Eviction: streams are trimmed to the channels' boundaries, and the writer is told what is left.

The measure of a round is owed from when it was asked for until it was told, whatever becomes of
Redis meanwhile; a writer that comes anew asks anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from agentbus.mirror.resp import Command, Reply
from agentbus.mirror.write import Changes, Mark
from agentbus.model.ids import CommitId, Seq
from agentbus.projector import server
from agentbus.projector.conversation import Purpose, Weigh
from agentbus.projector.index import Index
from agentbus.projector.outbox import Outbox
from agentbus.projector.recover import Step
from agentbus.projector.tops import Cut, Tops
from agentbus.wire.links import WRITER_PROJECTOR, Boundary, Evicted, Measured

DOCUMENTS: Final = 512
"""Documents removed in one step."""

Asker = Callable[[list[Command], Purpose], None]


class Trimming:
    """Also what is owed to the writer."""

    def __init__(self, out: Outbox, ask: Asker, tops: Tops, index: Index) -> None:
        self._out = out
        self._ask = ask
        self._tops = tops
        self._index = index
        self._owed: list[Evicted] = []

    # ---- trimming

    def steps(
        self, boundaries: list[Boundary], mark: Mark, asked: Evicted | None = None
    ) -> Iterator[Step]:
        """Takes what is below the boundaries out of Redis, which stays at the mark. Only to be
        called while nothing is in flight; after the last of them the measure is due, if asked."""
        changes = self._changes(self._tops.below(boundaries))
        steps = (Step(change, mark, removals) for change, removals in changes)
        step = next(steps, None)
        if step is None and asked is not None:
            step = Step(Changes([]), mark)
        while step is not None:
            following = next(steps, None)
            yield step if following else msgspec.structs.replace(step, asked=asked)
            step = following

    def _changes(self, cuts: list[Cut]) -> Iterator[tuple[Changes, list[Command]]]:
        """With their documents piece by piece, as each of those is a command."""
        if not self._index.is_there:
            if cuts:
                yield _cut(*(Boundary(channel, until) for channel, _, until in cuts)), []
            return
        for channel, oldest, until in cuts:
            for first in range(oldest, until, DOCUMENTS):
                end = Seq(min(first + DOCUMENTS, until))
                removals = self._index.removals(channel, range(first, end))
                yield _cut(Boundary(channel, end)), removals

    # ---- the measure

    def owe(self, asked: Evicted) -> None:
        """The writer waits for this round's measure."""
        self._owed.append(asked)

    def forget(self) -> None:
        """The writer that has asked is gone."""
        self._owed.clear()

    def weigh(self, commit_id: CommitId, asked: Evicted | None = None) -> None:
        """Asks for what is owed for one round, or (None) for all that are owed."""
        owed = tuple(self._owed) if asked is None else (asked,)
        if owed:
            self._ask([server.MEMORY], Weigh(owed, commit_id))

    def weighed(self, weigh: Weigh, reply: Reply) -> None:
        """Redis has answered."""
        size, with_index = server.dataset_bytes(reply), self._index.is_there
        for asked in weigh.asked:
            if any(asked is owed for owed in self._owed):
                self._owed = [owed for owed in self._owed if owed is not asked]
                measured = Measured(asked.round, weigh.commit_id, size, with_index)
                self._out.send(WRITER_PROJECTOR, measured)


def _cut(*boundaries: Boundary) -> Changes:
    return Changes([], boundaries=boundaries)
