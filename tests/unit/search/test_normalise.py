from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.search import normalise
from agentbus.search.normalise import LONGEST, Term
from tests.support.search_reference import texts


def words(text: str) -> list[str]:
    return normalise.text(text).words.split()


def parts(text: str) -> list[str]:
    return normalise.text(text).parts.split()


def tokens(typed: str, *, prefix: bool = False) -> list[str]:
    term = normalise.term(typed, prefix=prefix)
    assert term is not None
    return [*term.tokens[:-1], term.tokens[-1] + ("*" if term.prefix else "")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, World!", ["hello", "world"]),
        ("snake_case path/to/file.py", ["snake", "case", "path", "to", "file", "py"]),
        ("#123 it's a.b@c-d.org", ["123", "it", "s", "a", "b", "c", "d", "org"]),
        ("Résumé RÉSUMÉ re\u0301sume\u0301", ["resume"] * 3),
        ("Straße STRASSE", ["strasse"] * 2),
        ("\uff21\uff22\uff23 ﬁx x²", ["abc", "fix", "x2"]),
        ("Ørsted Łódź Đà \u0131İ", ["orsted", "lodz", "da", "ii"]),
        ("ёлка ЁЛКА", ["елка"] * 2),
        ("Ἀθήνᾳ", ["αθηναι"]),
        ("שָׁלוֹם", ["שלום"]),
        ("हिन्दी", ["हिन्दी"]),
        ("a\u00adb c\u200dd", ["ab", "cd"]),
        ("🎉👍🏽→€", ["🎉", "👍", "🏽", "→", "€"]),
        ("京都民", ["京都", "都民", "民"]),
        ("京", ["京"]),
        ("が か\u3099 か", ["が", "が", "か"]),
        ("ｶﾞ", ["ガ"]),
        ("入門Python3です", ["入門", "門", "python3", "です", "す"]),
        ("한국어", ["한국", "국어", "어"]),
        ("\ue000 \ud800 \0", []),
        ("", []),
    ],
)
def test_a_text_becomes_tokens(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fooBar", ["foo", "bar"]),
        ("HTTPServer", ["http", "server"]),
        ("getHTTP2Response", ["get", "http", "2", "response"]),
        ("ÉcoleNormale", ["ecole", "normale"]),
        ("Plain words HERE and Snake_Case x1", []),
        ("aB " + "aB" * LONGEST, ["a", "b"]),
    ],
)
def test_camel_case_words_are_also_found_by_their_parts(text: str, expected: list[str]) -> None:
    assert parts(text) == expected


@pytest.mark.parametrize("length", [LONGEST, LONGEST + 1, 3 * LONGEST, 5 * LONGEST - 1])
def test_very_long_words_are_phrases_of_pieces(length: int) -> None:
    word = ("0123456789" * 40)[:length]
    pieces = [word[at : at + LONGEST] for at in range(0, length, LONGEST)]
    assert words(f"so {word} it") == ["so", *pieces, "it"]
    assert tokens(word) == pieces


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("POL-358", ["pol", "358"]),
        ("京都", ["京都"]),
        ("京都民", ["京都", "都民"]),
        ("京", ["京*"]),
        ("入門Python", ["入門", "門", "python"]),
        ("Python入", ["python", "入*"]),
        ("Python入門", ["python", "入門"]),
        ("京都 東京", ["京都", "都", "東京"]),
    ],
)
def test_a_query_term_is_the_phrase_of_its_tokens(typed: str, expected: list[str]) -> None:
    assert tokens(typed) == expected


def test_a_prefix_is_of_the_last_token_unless_that_begins_whatever_follows() -> None:
    assert tokens("snake_ca", prefix=True) == ["snake", "ca*"]
    assert tokens("京都", prefix=True) == ["京都"]


@pytest.mark.parametrize("typed", ["", "(", "-- ", "\u0301", "\0\ue000"])
def test_what_is_not_indexed_is_no_term(typed: str) -> None:
    assert normalise.term(typed, prefix=False) is None


def test_a_term_keeps_what_to_show() -> None:
    assert normalise.term("Snake_Case京都民", prefix=False) == Term(
        ("snake", "case", "京都", "都民"), False, ("snake", "case京都民")
    )


@given(texts)
def test_folding_twice_is_folding_once(text: str) -> None:
    assert normalise.fold(normalise.fold(text)) == normalise.fold(text)


@given(texts)
def test_tokens_are_of_ascii_letters_and_digits_and_of_what_is_beyond_ascii(text: str) -> None:
    for token in words(text) + parts(text):
        assert all(not c.isascii() or (c.isalnum() and not c.isupper()) for c in token)
        assert len(token) <= LONGEST


@given(st.text(alphabet="abc XY_-.1", max_size=200))
def test_plain_text_is_treated_like_any_other(text: str) -> None:
    """The short way for ASCII gives what the long way does."""
    assert words(text) == words(text + " é")[:-1]
    assert parts(text) == parts(text + " é")
