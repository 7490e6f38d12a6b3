"""What a query finds, said as plainly as possible: texts and queries for properties of search."""

from __future__ import annotations

from hypothesis import strategies as st

from agentbus.search import normalise
from agentbus.search.normalise import Term
from agentbus.search.query import Query

FRAGMENTS = [
    *("a", "b", "ab", "foo", "Bar", "fooBar", "HTTPServer", "snake_case", "x/y.py", "#12", "a-b"),
    *("é", "ß", "Ångström", "京", "京都", "都民", "ไทย", "हिन्दी", "한국", "🎉", "👍🏽", "½", "ﬁ"),
    *(" ", " ", "  ", "\n", "\0", "'", '"', "*", "-", "--", "(", ")", ":", "_", ".", "\u00ad"),
    *("OR", "AND", "NOT", "NEAR", "marks", "x" * 70, "\u0301", "\u200d", "İ", "\u0131", "\ud800"),
]

texts = st.one_of(
    st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join),
    st.lists(st.sampled_from("ab京都 _-"), max_size=12).map("".join),
    st.text(max_size=40),
)


def finds(query: Query, text: str) -> bool:
    """Whether a text is among what a query means."""
    indexed = normalise.text(text)
    fields = [indexed.words.split(" "), indexed.parts.split(" ")]
    fields = [[token for token in field if token] for field in fields]

    def has(term: Term) -> bool:
        return any(_is_in(term, field) for field in fields)

    if query.nothing:
        return False
    return all(map(has, query.wanted)) and not any(map(has, query.unwanted))


def _is_in(term: Term, field: list[str]) -> bool:
    *before, last = term.tokens
    for at in range(len(before), len(field)):
        ends = field[at].startswith(last) if term.prefix else field[at] == last
        if ends and field[at - len(before) : at] == before:
            return True
    return False
