"""A search of the index in Redis as a conversation without IO.

    commands() ─▶ Redis ─▶ take(replies) ─▶ commands() ... until `done`; then `page()`

First the candidates are asked for, then their envelopes; where too few of those are still there,
candidates again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec

from agentbus.errors import InvalidArgument, Unavailable
from agentbus.search.document import EVERY
from agentbus.search.matching import has
from agentbus.search.normalise import Term
from agentbus.search.query import Query
from agentbus.search.query_engine import (
    ID,
    INDEX,
    MEMORY,
    PARTS,
    WORDS,
    Command,
    Place,
    field,
    place,
)
from agentbus.search.query_engine.render import expression, unsure
from agentbus.search.request import MAX_RANKED, Anchor, Request, following
from agentbus.search.results import Candidate, Page, PageBuilder

TIMEOUT_MS: Final = 1000
"""All that Redis does waits for a search."""

MOST_EXAMINED: Final = 4_096
"""Results read for one page, where many turn out to be none, or to be gone."""

FIRST_BATCH: Final = 16
BATCH: Final = 128
"""Envelopes read at a time; the byte ceiling of most pages ends them with the first few."""

SLACK: Final = 64
"""More results than a page needs are ranked, for those that have gone."""

_LAST: Final = 2**53 - 1
_LIMIT: Final = (b"LIMIT", b"0")
_OPTIONS: Final = (b"TIMEOUT", b"%d" % TIMEOUT_MS, b"DIALECT", b"2")
_NEWEST: Final[Command] = (
    *(b"FT.SEARCH", INDEX, b"@f:{%b}" % EVERY.encode(), b"RETURN", b"1", ID),
    *(b"SORTBY", ID, b"DESC", *_LIMIT, b"1", *_OPTIONS),
)
"""The newest document there is, whatever was searched for."""

_TOO_SLOW: Final = (
    "the search took too long and was stopped: narrow it by `channels`, `since` or `until`, or by "
    "words that fewer messages have"
)


class Envelopes(Protocol):
    """Where envelopes are kept."""

    def ask(self, place: Place, memory_id: str | None) -> Command:
        """Asks for the current envelope at a position."""
        ...

    def read(self, reply: Any) -> bytes | None:
        """The envelope; None where it has gone."""
        ...


class _Found(msgspec.Struct, frozen=True):
    id: int
    score: float
    place: Place
    memory_id: str | None
    fields: tuple[str, ...] = ()


class _Check:
    """Of what the engine cannot tell; see `render`."""

    def __init__(self, query: Query) -> None:
        self._wanted = [_as_fields(term) for term in query.wanted if unsure(term)]
        self._unwanted = [_as_fields(term) for term in query.unwanted if unsure(term)]
        self.needs: tuple[bytes, ...] = (WORDS, PARTS) if self._wanted or self._unwanted else ()
        """The fields to be read for it."""

    def passes(self, found: _Found) -> bool:
        """Whether it matches."""

        def present(term: Term) -> bool:
            return any(has(term, text) for text in found.fields)

        return all(map(present, self._wanted)) and not any(map(present, self._unwanted))


def _as_fields(term: Term) -> Term:
    return Term(tuple(map(field, term.tokens)), term.prefix, term.shown)


class Searching:
    """One page of one search."""

    def __init__(self, request: Request, envelopes: Envelopes) -> None:
        self._request = request
        self._check = _Check(request.query)
        self._fields = (ID, MEMORY, *self._check.needs)
        self._envelopes = envelopes
        self._builder = PageBuilder(request, 0)
        self._candidates: list[_Found] = []
        self._asked: list[_Found] = []
        self._exhausted = request.query.nothing
        anchor = request.anchor
        self._below = _LAST if anchor is None or request.is_ranked else anchor.last[0] - 1
        self._after = anchor
        self._ranked = request.limit + SLACK + (0 if anchor is None else anchor.rank)
        self._width = FIRST_BATCH
        self._examined = 0
        self.done = self._exhausted

    def commands(self) -> list[Command]:
        """What to ask next."""
        self._asked, self._candidates = (
            self._candidates[: self._width],
            self._candidates[self._width :],
        )
        if self._asked:
            ask = self._envelopes.ask
            return [ask(found.place, found.memory_id) for found in self._asked]
        return [self._rank(), _NEWEST] if self._request.is_ranked else [self._newest()]

    def take(self, replies: Sequence[Any]) -> None:
        """The replies to the last commands. Raises Unavailable, InvalidArgument (too slow)."""
        if self._asked:
            room = self._builder.take(self._present(replies))
            self._width = BATCH
        else:
            self._parse(replies)
            room = True
        self.done = not room or (not self._candidates and self._exhausted)
        if not self.done and not self._candidates and self._examined > MOST_EXAMINED:
            self._give_up()

    def page(self) -> Page:
        """The page, once it is done."""
        return self._builder.page()

    # ---- steps

    def _give_up(self) -> None:
        """With what there is, which may be continued."""
        if self._builder.is_empty:
            raise InvalidArgument(_TOO_SLOW)
        self._builder.interrupted()
        self.done = True

    def _newest(self) -> Command:
        query = expression(self._request, self._below).encode()
        wanted = (b"RETURN", b"%d" % len(self._fields), *self._fields, b"SORTBY", ID, b"DESC")
        return (b"FT.SEARCH", INDEX, query, *wanted, *_LIMIT, b"%d" % BATCH, *_OPTIONS)

    def _rank(self) -> Command:
        anchor = self._request.anchor
        last = _LAST if anchor is None else anchor.newest
        count = b"%d" % min(self._ranked, MAX_RANKED)
        query = expression(self._request, last).encode()
        return (
            *(b"FT.AGGREGATE", INDEX, query, b"SCORER", b"BM25", b"ADDSCORES"),
            *(b"LOAD", b"%d" % (len(self._fields) + 1), b"@__key"),
            *(b"@" + name for name in self._fields),
            *(b"SORTBY", b"4", b"@__score", b"DESC", b"@" + ID, b"DESC", b"MAX", count),
            *(*_LIMIT, count, *_OPTIONS),
        )

    def _parse(self, replies: Sequence[Any]) -> None:
        for reply in replies:
            _require(reply)
        self._examined += len(replies[0]) // 2
        if not self._request.is_ranked:
            found = _searched(replies[0])
            self._candidates = list(filter(self._check.passes, found))
            self._exhausted = len(found) < BATCH
            if found:
                self._below = found[-1].id - 1
            return
        ranked = _aggregated(replies[0])
        newest = [found.id for found in (*ranked, *_searched(replies[1]))]
        self._builder.saw(max(newest, default=0))
        self._exhausted = len(ranked) < min(self._ranked, MAX_RANKED) or self._ranked >= MAX_RANKED
        self._ranked *= 2
        by_id = {found.id: found for found in ranked}
        order = following([(found.id, found.score) for found in ranked], self._after)
        candidates = [by_id[number] for number, _ in order]
        self._candidates = list(filter(self._check.passes, candidates))

    def _present(self, replies: Sequence[Any]) -> list[Candidate]:
        present = []
        for found, reply in zip(self._asked, replies, strict=True):
            envelope = self._envelopes.read(reply)
            if envelope is not None:
                present.append(Candidate(found.id, found.score, envelope))
        last = self._asked[-1]
        rank = 0 if self._after is None else self._after.rank
        self._after = Anchor(b"", 0, (last.id,), last.score, rank)
        return present


def _require(reply: Any) -> None:
    if isinstance(reply, list):
        return
    text = str(getattr(reply, "text", ""))
    if "timeout" in text.lower():
        raise InvalidArgument(_TOO_SLOW)
    raise Unavailable(f"Redis refused a search ({text[:100]}); try again shortly")


def _searched(reply: list[Any]) -> list[_Found]:
    """Of `FT.SEARCH`: a count, then for each result its key and its fields."""
    pairs = zip(reply[1::2], reply[2::2], strict=True)
    return [_found([b"__key", document_key, *fields]) for document_key, fields in pairs]


def _aggregated(reply: list[Any]) -> list[_Found]:
    """Of `FT.AGGREGATE`: a count, then the fields of each result."""
    return [_found(fields) for fields in reply[1:]]


def _found(fields: list[bytes]) -> _Found:
    values = dict(zip(fields[::2], fields[1::2], strict=True))
    memory_id = values.get(MEMORY)
    return _Found(
        int(values[ID]),
        float(values.get(b"__score", 0)),
        place(values[b"__key"]),
        None if memory_id is None else memory_id.decode(),
        tuple(values[name].decode() for name in (WORDS, PARTS) if name in values),
    )
