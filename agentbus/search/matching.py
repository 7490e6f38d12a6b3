"""Whether a text has a term, for an index that cannot tell."""

from __future__ import annotations

from agentbus.search.normalise import Term


def overlaps(term: Term) -> bool:
    """Whether one word could stand for two of the term's tokens."""
    return len(set(term.tokens)) < len(term.tokens)


def has(term: Term, field: str) -> bool:
    """Whether the tokens are next to each other in a field, whose tokens are between spaces."""
    text = f" {' '.join(field.split())} "
    sought = f" {' '.join(term.tokens)}"
    return sought in text if term.prefix else f"{sought} " in text
