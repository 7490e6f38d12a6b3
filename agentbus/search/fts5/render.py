"""A request as an FTS5 expression; every token in it is of letters and digits, in quotes."""

from __future__ import annotations

from collections.abc import Iterable

from agentbus.search.document import EVERY
from agentbus.search.normalise import Term
from agentbus.search.request import Request


def expression(request: Request) -> str:
    """What rows must match. There is no `NOT` without something before it in FTS5."""
    query = request.query
    needed = [f"{{words parts}} : {_phrase(term)}" for term in query.wanted]
    needed += [f"marks : ({' OR '.join(marks)})" for marks in request.marks]
    wanted = " AND ".join(needed) or f"marks : {EVERY}"
    if not query.unwanted:
        return wanted
    return f"({wanted}) NOT ({{words parts}} : ({_any(query.unwanted)}))"


def _any(terms: Iterable[Term]) -> str:
    return " OR ".join(map(_phrase, terms))


def _phrase(term: Term) -> str:
    return f'"{" ".join(term.tokens)}"{" *" if term.prefix else ""}'
