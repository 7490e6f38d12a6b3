"""One page of a search: whole envelopes within its bounds, and how to go on."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from agentbus.search.request import Request
from agentbus.search.snippet import Finder
from agentbus.wire.links import SearchHit


class Candidate(msgspec.Struct, frozen=True):
    """A message that was found and is there."""

    id: int
    score: float
    envelope: bytes


class Page(msgspec.Struct, frozen=True):
    """What a search answers."""

    hits: list[SearchHit]
    next_cursor: str | None


class _Content(msgspec.Struct, frozen=True):
    content: str


_contents = msgspec.json.Decoder(_Content)


class PageBuilder:
    """Takes candidates in their order until the page is full: by count, or by bytes but for the
    first, which comes however large it is."""

    def __init__(self, request: Request, newest: int) -> None:
        self._request = request
        self._newest = newest if request.anchor is None else request.anchor.newest
        self._found: list[Candidate] = []
        self._bytes = 0
        self._more = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing was taken."""
        return not self._found

    def take(self, candidates: Iterable[Candidate]) -> bool:
        """Whether there is room for what may follow; it is known then whether anything does."""
        for candidate in candidates:
            size = self._bytes + len(candidate.envelope)
            full = len(self._found) >= self._request.limit or size > self._request.max_bytes
            if self._found and full:
                self._more = True
                return False
            self._found.append(candidate)
            self._bytes = size
        return True

    def saw(self, newest: int) -> None:
        """The newest row there is, where it was not known from the beginning."""
        if self._request.anchor is None:
            self._newest = newest

    def interrupted(self) -> None:
        """What follows is not known: there may be more."""
        self._more = True

    def page(self) -> Page:
        """What was taken."""
        finder = Finder(self._request.query.wanted)
        hits = [
            SearchHit(found.envelope, finder.snippet(_contents.decode(found.envelope).content))
            for found in self._found
        ]
        return Page(hits, self._next_cursor())

    def _next_cursor(self) -> str | None:
        if not self._more or not self._found:
            return None
        shown = [found.id for found in self._found]
        return self._request.cursor(self._newest, shown, self._found[-1].score)
