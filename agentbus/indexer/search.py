"""Carrying out one search: candidates of the index that the database still has."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

from agentbus.errors import AgentbusError, InternalError, InvalidArgument, Recovering
from agentbus.indexer.events import Searched
from agentbus.search.fts5.read import IndexReader, Range, Stopped
from agentbus.search.fts5.read import Search as IndexSearch
from agentbus.search.fts5.schema import IndexDamaged
from agentbus.search.request import Request, build
from agentbus.search.results import Candidate, Page, PageBuilder
from agentbus.store.lookup import WIDTH, Lookup
from agentbus.wire.error_codes import to_failure
from agentbus.wire.links import SearchAsk, SearchFound, SearchRefused

FIRST_BATCH: Final = 32
"""Envelopes read at first, the byte ceiling of most pages ends them soon."""

NEXT_BATCH: Final = 16
"""Those read then, at least."""

_END: Final = 2**63 - 1
_TOO_SLOW: Final = (
    "the search was stopped after 2 s without a result: narrow it by `channels`, `since` or "
    "`until`, or by words that fewer messages have"
)


class Searcher:
    """For one thread, which is the one to close it as well. `stop` ends a search early."""

    def __init__(self, index_path: str, database_path: str) -> None:
        self._index = IndexReader(index_path)
        self._lookup = Lookup(database_path)

    def close(self) -> None:
        """Gives both files up; the next search opens them anew."""
        self._index.close()
        self._lookup.close()

    def run(self, number: int, ask: SearchAsk, stop: Callable[[], bool]) -> Searched:
        """The answer, whatever happens."""
        try:
            page = self._find(ask, stop)
        except IndexDamaged as error:
            self.close()
            text = "the search index is damaged and is made anew; try again shortly"
            return Searched(
                number, SearchRefused(ask.ref, to_failure(Recovering(text))), str(error)
            )
        except AgentbusError as error:
            return Searched(number, SearchRefused(ask.ref, to_failure(error)))
        except Exception as error:  # noqa: BLE001 - one search, whose fault must not end the others
            self.close()
            kind = type(error).__name__
            failure = to_failure(InternalError(f"the search failed ({kind}); see indexer.log"))
            return Searched(number, SearchRefused(ask.ref, failure), fault=kind)
        return Searched(number, SearchFound(ask.ref, page.hits, page.next_cursor))

    def _find(self, ask: SearchAsk, stop: Callable[[], bool]) -> Page:
        builder: PageBuilder | None = None
        try:
            with self._index.searching(stop) as search:
                request = self._request(ask, search)
                builder = PageBuilder(request, search.newest)
                self._fill(builder, request, search)
        except Stopped:
            if builder is None or builder.is_empty:
                raise InvalidArgument(_TOO_SLOW) from None
            builder.interrupted()
        return builder.page()

    def _request(self, ask: SearchAsk, search: IndexSearch) -> Request:
        return build(
            ask.query,
            ask.filters,
            ask.order,
            ask.limit,
            ask.cursor,
            ask.max_bytes,
            self._lookup.channels() if ask.filters.channels else {},
            search.mark.instance,
        )

    def _fill(self, builder: PageBuilder, request: Request, search: IndexSearch) -> None:
        candidates = search.candidates(request, self._range(request))
        missing = request.limit + 1  # one more tells whether there is more
        width = min(FIRST_BATCH, missing)
        while batch := list(islice(candidates, width)):
            current = self._lookup.current([number for number, _ in batch])
            found = [
                Candidate(number, score, current[number])
                for number, score in batch
                if number in current
            ]
            if not builder.take(found):
                return
            missing -= len(found)
            width = min(WIDTH, max(NEXT_BATCH, missing))

    def _range(self, request: Request) -> Range:
        first, last = 0, _END
        if request.since is not None:
            first = self._lookup.first_since(request.since)
        if request.until is not None:
            last = self._lookup.first_since(request.until + 1) - 1
        return Range(first, last)
