"""Searches that wait until the index has what their caller has sent, and those that run.

ask ──▶ waiting ──index has the commit──▶ running ──▶ answered
          └──too long: `recovering`         └──cancelled: not answered

What its caller has sent, a search finds. What others had sent when it came, it finds as well,
unless the index takes longer than `FRESH_SECONDS` to get there.
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
FRESH_SECONDS: Final = 0.5
"""How long a search waits for what others have sent."""

MOST: Final = 256
"""Searches that wait or run; who asks for more is refused."""


class _Waiting(msgspec.Struct, frozen=True):
    ask: SearchAsk
    newest: CommitId
    fresh_until: float
    until: float

    def able(self, applied: CommitId, now: float) -> bool:
        """Whether it can begin."""
        if self.ask.after_commit > applied:
            return False
        return self.newest <= applied or self.fresh_until <= now

    def due(self, applied: CommitId | None) -> float:
        """When something becomes of it if the index stays as it is; None: it is not ready."""
        able = applied is not None and self.ask.after_commit <= applied
        return self.fresh_until if able else self.until


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

    def due(self, applied: CommitId | None) -> float:
        """When one will have waited long enough; None: the index is not ready."""
        return min((waiting.due(applied) for waiting in self._waiting.values()), default=math.inf)

    def ask(self, ask: SearchAsk, newest: CommitId, now: float) -> list[Effect]:
        """Takes a search, or refuses it where there are too many; `newest` is the last commit that
        is known of."""
        if len(self._waiting) + len(self._running) >= MOST:
            return [_refuse(ask, Unavailable(f"{MOST} searches are under way; try again shortly"))]
        fresh_until, until = now + FRESH_SECONDS, now + WAIT_SECONDS
        self._waiting[ask.ref] = _Waiting(ask, newest, fresh_until, until)
        return []

    def release(self, applied: CommitId, now: float) -> list[Effect]:
        """Begins those that the index is far enough for, in the order they were asked in."""
        able = [each.ask for each in self._waiting.values() if each.able(applied, now)]
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
