from __future__ import annotations

import pytest
from hypothesis import given

from agentbus.errors import InvalidArgument
from agentbus.search.normalise import Term
from agentbus.search.query import MAX_BYTES, Query, parse
from tests.support.search_reference import texts


def shown(terms: tuple[Term, ...]) -> list[str]:
    return [" ".join(term.tokens) + ("*" if term.prefix else "") for term in terms]


def read(typed: str) -> tuple[list[str], list[str]]:
    query = parse(typed)
    assert not query.nothing
    return shown(query.wanted), shown(query.unwanted)


@pytest.mark.parametrize(
    ("typed", "wanted", "unwanted"),
    [
        ("", [], []),
        ("  \n ", [], []),
        ("*", [], []),
        ("quick Fox", ["quick", "fox"], []),
        ("fox fox FOX", ["fox"], []),
        ('"quick fox" dog', ["quick fox", "dog"], []),
        ("“quick fox” «red dog»", ["quick fox", "red dog"], []),
        ('say"quick fox"dog', ["say", "quick fox", "dog"], []),
        ("fo* snake_ca*", ["fo*", "snake ca*"], []),
        ('"quick fo"*', ["quick fo*"], []),
        ("fo**", ["fo*"], []),
        ("fo*x", ["fo x"], []),
        ("-fox", [], ["fox"]),
        ('quick -fox -"red dog" -ca* -"a b"*', ["quick"], ["fox", "red dog", "ca*", "a b*"]),
        ("--no-verify", ["no verify"], []),
        ("---x", ["x"], []),
        ('--"a b"', ["a b"], []),
        ("POL-358", ["pol 358"], []),
        ("it's TODO:", ["it s", "todo"], []),
        ("fox (", ["fox"], []),
        ("-( fox", ["fox"], []),
        ("- fox", ["fox"], []),
        ("-(", [], []),
        ('5" pipe', ["5", "pipe"], []),
        ('a "b c', ["a", "b", "c"], []),
        ('"a b" c" d', ["a b", "c", "d"], []),
        ("京", ["京*"], []),
        ("-京都", [], ["京都"]),
    ],
)
def test_what_is_typed_is_read(typed: str, wanted: list[str], unwanted: list[str]) -> None:
    assert read(typed) == (wanted, unwanted)


@pytest.mark.parametrize("typed", ["(", "()", '"', '""', '"("', "--", "-", ": ;", "\0", "\ue000"])
def test_what_cannot_be_found_finds_nothing(typed: str) -> None:
    assert parse(typed) == Query(nothing=True)


def test_a_query_has_at_most_4_kib() -> None:
    assert parse("é" * (MAX_BYTES // 2)).wanted
    with pytest.raises(InvalidArgument, match="4098 bytes, at most 4096"):
        parse("é" * (MAX_BYTES // 2 + 1))


@given(texts)
def test_nothing_that_is_typed_is_an_error(typed: str) -> None:
    query = parse(typed)
    assert not (query.nothing and (query.wanted or query.unwanted))
    assert all(term.tokens for term in query.wanted + query.unwanted)
