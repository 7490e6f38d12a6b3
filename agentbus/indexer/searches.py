"""Searches that wait until the index has what their caller has sent, and those that run.

ask ──▶ waiting ──index has the commit──▶ running ──▶ answered
          └──too long: `recovering`         └──cancelled: not answered
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from agentbus.errors import AgentbusError, Recovering, Unavailable
from agentbus.indexer.events import Cancel, Effect, Search
from agentbus.model.ids import CommitId
from agentbus.wire.error_codes import to_failure
from agentbus.wire.events import Send
from agentbus.wire.links import GATEWAY_INDEXER, SearchAsk, SearchFound, SearchRefused

WAIT_SECONDS: Final = 5.0
MOST: Final = 256
"""Searches that wait or run; who asks for more is refused."""


class _Waiting(msgspec.Struct, frozen=True):
    ask: SearchAsk
    until: float


class Searches:
    """Of one gateway, by `ref`."""

    def __init__(self) -> None:
        self._waiting: dict[int, _Waiting] = {}
        self._running: dict[int, int] = {}
        """By number; the refs."""
        self._last = 0

    @property
    def waits(self) -> bool:
        """Whether any waits for the index."""
        return bool(self._waiting)

    def due(self) -> float:
        """When one will have waited too long."""
        return min((waiting.until for waiting in self._waiting.values()), default=math.inf)

    def ask(self, ask: SearchAsk, now: float) -> list[Effect]:
        """Takes a search, or refuses it where there are too many."""
        if len(self._waiting) + len(self._running) >= MOST:
            return [_refuse(ask, Unavailable(f"{MOST} searches are under way; try again shortly"))]
        self._waiting[ask.ref] = _Waiting(ask, now + WAIT_SECONDS)
        return []

    def release(self, applied: CommitId) -> list[Effect]:
        """Begins those that the index is far enough for, in the order they were asked in."""
        able = [w.ask for w in self._waiting.values() if w.ask.after_commit <= applied]
        return [self._begin(ask) for ask in able]

    def _begin(self, ask: SearchAsk) -> Search:
        del self._waiting[ask.ref]
        self._last += 1
        self._running[self._last] = ask.ref
        return Search(self._last, ask)

    def expire(self, now: float, reason: str) -> list[Effect]:
        """Refuses those that have waited too long."""
        late = [waiting.ask for waiting in self._waiting.values() if waiting.until <= now]
        for ask in late:
            del self._waiting[ask.ref]
        text = f"the search index is not up to date ({reason or 'it is behind'}); try again shortly"
        return [_refuse(ask, Recovering(text)) for ask in late]

    def cancel(self, ref: int) -> list[Effect]:
        """It is not answered any more."""
        self._waiting.pop(ref, None)
        numbers = [number for number, running in self._running.items() if running == ref]
        for number in numbers:
            del self._running[number]
        return [Cancel(number) for number in numbers]

    def forget(self) -> list[Effect]:
        """The gateway that asked is gone."""
        self._waiting.clear()
        running, self._running = list(self._running), {}
        return [Cancel(number) for number in running]

    def ended(self, number: int, answer: SearchFound | SearchRefused) -> list[Effect]:
        """Answers one that was carried out, unless it was cancelled."""
        if self._running.pop(number, None) is None:
            return []
        return [Send(GATEWAY_INDEXER, answer)]


def _refuse(ask: SearchAsk, error: AgentbusError) -> Effect:
    return Send(GATEWAY_INDEXER, SearchRefused(ask.ref, to_failure(error)))
