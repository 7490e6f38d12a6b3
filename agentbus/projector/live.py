"""The steps of a projection that is up to the database: what the writer tells, in its order."""

from __future__ import annotations

from collections.abc import Iterator

from agentbus.mirror.write import Mark
from agentbus.model.ids import CommitId
from agentbus.projector.backlog import Backlog, Eviction
from agentbus.projector.recover import Step
from agentbus.projector.tops import Tops
from agentbus.projector.trimming import Trimming
from agentbus.wire.links import Boundary, Committed, Evicted


class Live:
    """Commits as they are, many at once; between them, what was evicted."""

    def __init__(self, trimming: Trimming, tops: Tops) -> None:
        self._trimming = trimming
        self._tops = tops
        self._backlog = Backlog()
        self._held: Eviction | None = None
        self._trims: Iterator[Step] | None = None

    def start(self, commit_id: CommitId) -> None:
        """Redis is at this commit, and what was told before does not matter any more."""
        self._held = self._trims = None
        self._backlog.start(commit_id, self._tops.heads())

    def committed(self, committed: Committed) -> bool:
        """Whether nothing is missing between this commit and the one before it."""
        return self._backlog.add(committed)

    def evicted(self, boundaries: list[Boundary], asked: Evicted | None = None) -> None:
        """After the commits so far; then the measure is told to whoever has asked."""
        self._backlog.evict(Eviction(boundaries, asked))

    def next(self, mark: Mark, *, idle: bool) -> Step | None:
        """What follows on this mark. Evictions wait until nothing is in flight (`idle`): only then
        is it known what there is."""
        while True:
            step = None if self._trims is None else next(self._trims, None)
            if step is not None:
                return step
            waiting = self._held or self._backlog.merge()
            if waiting is None:
                return None
            if not isinstance(waiting, Eviction):
                return Step(waiting.changes, mark.at(waiting.commit_id))
            self._held = None if idle else waiting
            if not idle:
                return None
            self._trims = self._trimming.steps(waiting.boundaries, mark, waiting.asked)
