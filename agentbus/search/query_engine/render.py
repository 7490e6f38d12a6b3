"""A request as a query of Redis' query engine (dialect 2); every token is of letters and digits.

The engine lets one word stand for two of a phrase (`a a` matches `a b`), and misses phrases that
end in a prefix where several words begin with it. Such terms are `unsure`: here they are only
narrowed down, if wanted at all, and who reads checks the results for them.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentbus.search.document import EVERY
from agentbus.search.matching import overlaps
from agentbus.search.normalise import Term
from agentbus.search.query_engine import field
from agentbus.search.request import Request


def expression(request: Request, last: int) -> str:
    """What documents must match, up to this row id."""
    query = request.query
    needed = [_term(term) for term in query.wanted]
    needed += [f"@f:{{{'|'.join(marks)}}}" for marks in request.marks]
    if not needed:
        needed.append(f"@f:{{{EVERY}}}")
    needed.append(f"@n:[-inf {last}]")
    if request.since is not None or request.until is not None:
        since = "-inf" if request.since is None else request.since
        until = "+inf" if request.until is None else request.until
        needed.append(f"@a:[{since} {until}]")
    unwanted = [term for term in query.unwanted if not unsure(term)]
    if unwanted:
        needed.append(f"-({_any(unwanted)})")
    return " ".join(needed)


def unsure(term: Term) -> bool:
    """Whether what the expression finds must be checked for this term."""
    return len(term.tokens) > 1 and (term.prefix or overlaps(term))


def _any(terms: Iterable[Term]) -> str:
    return "|".join(map(_term, terms))


def _term(term: Term) -> str:
    """In either field, but not from one into the other."""
    words = field(" ".join(term.tokens)) + ("*" if term.prefix else "")
    if len(term.tokens) == 1:
        return f"@t|p:({words})"
    words = f"({words})" if unsure(term) else f'("{words}")'
    return f"(@t:{words}|@p:{words})"
