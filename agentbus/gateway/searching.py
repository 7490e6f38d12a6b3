"""Routing searches: to the indexer, or to the query engine of the server where it has one.

A search waits, for a while, for an index that is not ready, and is asked again where the indexer
died over it. The index is told of commits a little later, many at once, or when somebody searches.
A search names the commit that it must see besides.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from agentbus.errors import AgentbusError, InternalError, Recovering
from agentbus.gateway import accept
from agentbus.gateway.alarms import Alarms
from agentbus.gateway.channels import Channels
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Call, Connection, live
from agentbus.gateway.events import SearchEngine
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.reads import Reads
from agentbus.gateway.visibility import Visibility
from agentbus.model.ids import CommitId
from agentbus.wire.error_codes import from_failure
from agentbus.wire.links import (
    GATEWAY_INDEXER,
    IndexState,
    IndexUpTo,
    SearchAsk,
    SearchCancel,
    SearchFilter,
    SearchFound,
    SearchRefused,
)
from agentbus.wire.rpc import SearchItem, SearchParams, SearchResult

PATIENCE_SECONDS: Final = 10.0
NUDGE_SECONDS: Final = 0.02

LATE: Final = "searches"
"""Name of the alarm at which `late` is due."""

NUDGE: Final = "commits for the index"
"""Name of the alarm at which `nudge` is due."""

QUERY_ENGINE: Final = "query_engine"
INDEXER: Final = "indexer"
"""The service that searches where the server does not."""


class _Search:
    """One that is under way."""

    def __init__(self, call: Call, ask: SearchAsk, deadline: float) -> None:
        self.call = call
        self.ask = ask
        self.deadline = deadline
        self.asked = False
        """Whether somebody is at it."""


class Searching:
    """The method `search`, and what there is to know of the index."""

    def __init__(
        self,
        out: Outbox,
        alarms: Alarms,
        condition: Condition,
        channels: Channels,
        reads: Reads,
        visibility: Visibility,
    ) -> None:
        self._out = out
        self._alarms = alarms
        self._condition = condition
        self._channels = channels
        self._reads = reads
        self._visibility = visibility
        self._searches: dict[int, _Search] = {}
        """By `ref`, in the order of their deadlines."""
        self._backend = ""
        self._told = CommitId(0)
        self.index: IndexState | None = None
        """As the indexer said last; None where there is none."""

    # ---- the method

    def search(self, call: Call, params: SearchParams) -> None:
        """Has it looked for; the answer follows."""
        accept.search(params)
        self._condition.require_ready()
        if INDEXER in self._condition.given_up and self._backend != QUERY_ENGINE:
            raise InternalError(
                "nothing can be searched: the indexer died too often; `agentbus stop` and the next "
                "call start the daemon anew, `agentbus status` names the logs that say why"
            )
        attachment = live(call.connection, params.attachment)
        call.connection.begin_read()
        ask = SearchAsk(
            self._out.ref(),
            params.query,
            _filter(params),
            params.order,
            params.limit,
            params.cursor,
            max(attachment.last_commit, self._reads.revisions.newest),
            params.max_bytes,
        )
        search = _Search(call, ask, self._alarms.now + PATIENCE_SECONDS)
        self._searches[ask.ref] = search
        self._alarms.ensure(LATE, PATIENCE_SECONDS)
        self._begin(search)

    def _begin(self, search: _Search) -> None:
        if search.asked:
            return
        if self._backend == QUERY_ENGINE:
            search.asked = True
            self._visibility.when(search.ask.after_commit, partial(self._ask_engine, search))
        elif self._backend and self.index is not None and self.index.ready:
            search.asked = True
            self.nudge()
            self._out.send(GATEWAY_INDEXER, search.ask)

    def _ask_engine(self, search: _Search, visible: bool) -> None:
        if not visible:
            search.asked = False
        elif search.ask.ref in self._searches:
            channels = {channel.name: channel.info for channel in self._channels.all()}
            instance = self._condition.instance
            self._out.effects.append(SearchEngine(search.ask, channels, instance))

    def _begin_all(self) -> None:
        for search in list(self._searches.values()):
            self._begin(search)

    # ---- answers

    def answered(self, answer: SearchFound | SearchRefused) -> None:
        """What an index has found, or why nothing."""
        search = self._searches.pop(answer.ref, None)
        if search is None:
            return
        search.call.connection.reads -= 1
        if isinstance(answer, SearchRefused):
            self._out.refuse(search.call, from_failure(answer.failure))
            return
        results = [
            SearchItem(message=msgspec.Raw(hit.envelope), snippet=hit.snippet)
            for hit in answer.hits
        ]
        result = SearchResult(results=results, next_cursor=answer.next_cursor)
        self._out.answer(search.call, result)

    def late(self) -> None:
        """Gives up what has waited for too long."""
        now = self._alarms.now
        for search in list(self._searches.values()):
            if search.deadline > now:
                self._alarms.set(LATE, search.deadline)
                return
            self._give_up(search, self._not_ready(search))

    def _not_ready(self, search: _Search) -> AgentbusError:
        if search.asked:
            return Recovering("the search took too long; narrow it, or try again")
        why = "it is being made"
        if self._backend and self._backend != QUERY_ENGINE:
            why = self.index.reason if self.index else "the indexer is not there"
        return Recovering(f"the search index is not ready: {why}")

    def _give_up(self, search: _Search, error: AgentbusError) -> None:
        del self._searches[search.ask.ref]
        search.call.connection.reads -= 1
        self._cancel(search)
        self._out.refuse(search.call, error)

    def _cancel(self, search: _Search) -> None:
        if search.asked and self._backend != QUERY_ENGINE:
            self._out.send(GATEWAY_INDEXER, SearchCancel(search.ask.ref))

    def disconnected(self, connection: Connection) -> None:
        """Nobody waits for its searches any more."""
        gone = [each for each in self._searches.values() if each.call.connection is connection]
        for search in gone:
            del self._searches[search.ask.ref]
            self._cancel(search)

    def drop_all(self) -> None:
        """Refuses all: the bus does not go on."""
        for search in list(self._searches.values()):
            self._give_up(search, self._condition.unready())

    # ---- the indexes

    def indexed(self, state: IndexState) -> None:
        """The indexer says how it is."""
        self.index = state
        self._begin_all()

    def closed(self) -> None:
        """The indexer is gone, and what it was asked with it."""
        self.index = None
        if self._backend != QUERY_ENGINE:
            for search in self._searches.values():
                search.asked = False

    def projected(self, backend: str) -> None:
        """`query_engine`, `fts5`, or empty as long as the server's own index is being made."""
        self._backend = backend
        self._begin_all()

    # ---- commits

    def visible(self) -> None:
        """There is more to index."""
        if self.index is not None:
            self._alarms.ensure(NUDGE, NUDGE_SECONDS)

    def nudge(self) -> None:
        """Has the indexer read on."""
        if self.index is not None and self._told < self._condition.visible:
            self._told = self._condition.visible
            self._out.send(GATEWAY_INDEXER, IndexUpTo(self._told))


def _filter(params: SearchParams) -> SearchFilter:
    return SearchFilter(
        params.channels,
        params.sender,
        params.since,
        params.until,
        params.thread,
        params.reply_to,
        params.kind,
    )
