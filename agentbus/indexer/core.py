"""The indexer without its IO: events to the part that they concern.

keeper     the index: open, caught up, kept up, tidied
searches   who waits for it, and who is answered
"""

from __future__ import annotations

import math
from typing import Any, Final, assert_never

from agentbus.indexer.events import Effect, Event, Renew, Searched
from agentbus.indexer.keeper import Keeper, State
from agentbus.indexer.ports import Index, Remains, Source
from agentbus.indexer.searches import Searches
from agentbus.model.ids import CommitId
from agentbus.model.ports import Instant
from agentbus.runtime import exits
from agentbus.wire.events import Closed, Exit, Note, Opened, Received, Send, TurnEnded, WakeAt, Woke
from agentbus.wire.links import (
    GATEWAY_INDEXER,
    IndexState,
    IndexUpTo,
    SearchAsk,
    SearchCancel,
    Stop,
)

TELL_SECONDS: Final = 0.2
"""How often a change that nobody waits for is told."""


class Core:
    """See the module. Nothing is opened before the first event."""

    def __init__(self, source: Source, remains: Remains, index: Index) -> None:
        self._keeper = Keeper(source, remains, index)
        self._searches = Searches()
        self._effects: list[Effect] = []
        self._told: IndexState | None = None
        self._told_at = 0.0

    @property
    def state(self) -> State:
        """For tests and simulations."""
        return self._keeper.state

    @property
    def applied(self) -> CommitId:
        """The last commit that is in the index."""
        return self._keeper.applied

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """What follows from an event."""
        self._dispatch(event, now.monotonic)
        effects, self._effects = self._effects, []
        return effects

    def _dispatch(self, event: Event, now: float) -> None:
        match event:
            case Received(link, message):
                self._received(link, message, now)
            case TurnEnded() | Woke():
                self._work(now)
            case Searched():
                self._searched(event)
                self._work(now)
            case Opened(link):
                if link == GATEWAY_INDEXER:
                    self._told = None
                self._work(now)
            case Closed():
                self._effects += self._searches.forget()
            case _:
                assert_never(event)

    def _received(self, link: str, message: Any, now: float) -> None:
        match message:
            case IndexUpTo(commit_id):
                self._keeper.told(commit_id, now)
            case SearchAsk():
                self._keeper.told(message.after_commit, now)
                self._effects += self._searches.ask(message, self._keeper.target, now)
            case SearchCancel(ref):
                self._effects += self._searches.cancel(ref)
            case Stop():
                self._effects.append(Exit(exits.OK))
            case _ if link == GATEWAY_INDEXER:
                self._note("unexpected", message=type(message).__name__)
            case _:
                pass  # told to everybody; nothing to do for the indexer

    def _searched(self, event: Searched) -> None:
        self._effects += self._searches.ended(event.number, event.answer)
        if event.damaged is not None:
            self._keeper.damaged(event.damaged)
        if event.fault is not None:
            self._note("search_failed", error=event.fault)

    # ---- turns

    def _work(self, now: float) -> None:
        keeper, searches = self._keeper, self._searches
        keeper.work(now, urgent=searches.waits)
        self._effects += [Note(*note) for note in keeper.notes()]
        if keeper.takes_renewed():
            self._effects.append(Renew())
        applied = keeper.applied if keeper.state is State.READY else None
        if applied is not None:
            self._effects += searches.release(applied, now)
        self._effects += searches.expire(now, keeper.reason)
        told_at = self._tell(now)
        due = min(keeper.due(urgent=searches.waits), searches.due(applied), told_at)
        self._effects.append(WakeAt(due))

    def _tell(self, now: float) -> float:
        """Tells the gateway of the state where it has changed; when there will be more to tell."""
        keeper = self._keeper
        state = IndexState(
            keeper.state is State.READY,
            keeper.reason,
            keeper.applied,
            keeper.documents,
            keeper.text_bytes,
            keeper.missing,
        )
        told = self._told
        if told == state:
            return math.inf
        urgent = told is None or (told.ready, told.reason) != (state.ready, state.reason)
        if not urgent and now < self._told_at + TELL_SECONDS:
            return self._told_at + TELL_SECONDS
        self._told, self._told_at = state, now
        self._effects.append(Send(GATEWAY_INDEXER, state))
        return math.inf

    def _note(self, action: str, **fields: Any) -> None:
        self._effects.append(Note("warn", action, fields))
