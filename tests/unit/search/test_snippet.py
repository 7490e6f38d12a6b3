from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given

from agentbus.search.query import parse
from agentbus.search.snippet import WIDTH, Finder
from tests.support.search_reference import texts


def snippet(query: str, text: str) -> str:
    return Finder(parse(query).wanted).snippet(text)


def test_a_short_text_is_shown_whole_in_one_line() -> None:
    assert snippet("b", "a\n\tb   c") == "a b c"
    assert snippet("", "") == ""


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("needle_case", "Needle-Case"),
        ("NEEDLE", "a Needle"),
        ("need*", "Needles"),
        ('"a needle"', "A   Needle"),
        ("resume", "Résumé"),
        ("resume", "Re\u0301sume\u0301"),
        ("京都民", "京都民"),
        ("strasse", "Straße"),
        ("absent needle", "needle"),
    ],
)
@pytest.mark.parametrize("filler", ["filler ", "füller ", "詰め物"])
def test_the_place_is_shown_with_something_around_it(query: str, place: str, filler: str) -> None:
    found = snippet(query, filler * 100 + place + " " + filler * 100)
    assert unicodedata.normalize("NFC", " ".join(place.split())) in found
    assert found.startswith("…")
    assert found.endswith("…")
    assert len(found) <= WIDTH + 2


def test_a_place_that_is_not_in_the_text_shows_its_beginning() -> None:
    text = "word " * 100
    assert snippet("elsewhere", text) == " ".join(text[:WIDTH].split()) + "…"
    assert snippet("-word", text).startswith("word word")


@given(texts, texts)
def test_there_is_a_snippet_of_anything(query: str, text: str) -> None:
    found = snippet(query, text)
    assert len(found) <= WIDTH + 2
    assert "\n" not in found
