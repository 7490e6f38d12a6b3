from __future__ import annotations

import pytest

from agentbus.search.matching import has, overlaps
from agentbus.search.normalise import Term


def term(text: str) -> Term:
    return Term(tuple(text.rstrip("*").split()), text.endswith("*"), ())


@pytest.mark.parametrize(
    ("sought", "field", "expected"),
    [
        ("a b", "x a b y", True),
        ("a b", " x  a  b ", True),
        ("a b", "a bc", False),
        ("a b*", "a bc", True),
        ("a b", "xa b", False),
        ("a a", "a b", False),
        ("a a", "a a", True),
        ("a", "", False),
    ],
)
def test_tokens_are_whole_and_next_to_each_other(sought: str, field: str, expected: bool) -> None:
    assert has(term(sought), field) is expected


def test_tokens_overlap_where_one_is_there_twice() -> None:
    assert overlaps(term("a b a"))
    assert not overlaps(term("a b ab"))
