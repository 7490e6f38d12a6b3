"""One normaliser for documents and queries, so that both indexes find the same.

    compatibility and case   wide letters, ligatures, ß as abc, fi, ss
    accents                  résumé, Ångström, øre    as resume, angstrom, ore; Indic, Thai and kana
                             marks are letters and stay
    words                    runs of letters, digits and their marks; everything else separates:
                             snake_case, a/b.py, #123, it's, me@x.org are phrases of their parts
    symbols                  outside ASCII each is a word (emoji, arrows, currencies)
    scripts without spaces   京都民 as its pairs and its last sign: 京都 都民 民; a query of two or
                             more signs is the phrase of its pairs, of one sign a prefix
    CamelCase                as it is; and its parts apart, in a second field
    very long words          in pieces of `LONGEST`, a phrase again

Tokens are of ASCII letters and digits and of anything beyond ASCII, which both indexes take as they
are. `VERSION` and the Unicode tables in use name what an index was built with.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator
from typing import Final

import msgspec

VERSION: Final = f"1-{unicodedata.unidata_version}"
"""Raised when anything here changes what it makes of a text."""

LONGEST: Final = 64
"""Characters of a token; Redis' query engine finds no prefixes of much longer ones."""

_UNSPACED: Final = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Myanmar
    "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff"  # Hangul: words run together with their endings
    "\u1780-\u17ff"  # Khmer
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b"  # Han
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u3041-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff"  # kana, Bopomofo
    "\ua000-\ua4cf"  # Yi
)
_PAIRED: Final = re.compile(f"[{_UNSPACED}]+")
_SEGMENTS: Final = re.compile(f"([{_UNSPACED}]+)|[^{_UNSPACED}]+")
_LONG: Final = re.compile(f"([^ ]{{{LONGEST}}})(?=[^ ])")
_HOPS: Final = re.compile(f"(?s:.{{0,{LONGEST}}} )*+")
"""From space to space, as far apart as may be: ends where the next is too far, or there is none."""

_ASCII_WORD: Final = re.compile("[A-Za-z0-9]+")
_SHAPE: Final = bytes.maketrans(
    (string.ascii_uppercase + string.ascii_lowercase + string.digits).encode(),
    b"A" * 26 + b"a" * 36,
)
_CAMEL_PARTS: Final = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")

_ACCENTS: Final = (
    (0x0300, 0x036F),  # combining diacritical marks: Latin, Greek, Cyrillic
    (0x0483, 0x0489),  # Cyrillic
    (0x0591, 0x05C7),  # Hebrew points
    (0x0610, 0x061A),  # Arabic
    (0x064B, 0x065F),
    (0x0670, 0x0670),
    (0x06D6, 0x06ED),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF),
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFE20, 0xFE2F),
    (0xE0100, 0xE01EF),
)
_LETTERS: Final = {
    "æ": "ae",
    "œ": "oe",
    "ø": "o",
    "ł": "l",
    "đ": "d",
    "ħ": "h",
    "ŧ": "t",
    "\u0131": "i",
}
_PLAIN: Final = {ord(letter): plain for letter, plain in _LETTERS.items()}


def _is_accent(code: int) -> bool:
    return any(first <= code <= last for first, last in _ACCENTS)


class _Folding(dict[int, int | str | None]):
    """For `str.translate`: accents go, some letters are spelt plainly; each decided once."""

    def __missing__(self, code: int) -> int | str | None:
        accent = _is_accent(code) and unicodedata.category(chr(code)) == "Mn"
        self[code] = found = None if accent else _PLAIN.get(code, code)
        return found


class _Splitting(dict[int, int | str | None]):
    """For `str.translate`: separators as spaces, symbols between spaces; each decided once."""

    def __missing__(self, code: int) -> int | str | None:
        self[code] = found = _splitting(code)
        return found


def _splitting(code: int) -> int | str | None:
    character = chr(code)
    if code < 0x80:
        return code if character.isalnum() else " "
    category = unicodedata.category(character)
    if category[0] in "LNM":
        return code
    if category == "Cf":
        return None  # soft hyphens, joiners, directions: within a word, no part of it
    if category[0] == "S" or category == "Cn":
        return f" {character} "
    return " "


_FOLDING: Final = _Folding()
_SPLITTING: Final = _Splitting()
_ASCII: Final = bytes(ord(chr(c).lower()) if chr(c).isalnum() else 0x20 for c in range(0x80)).ljust(
    256, b" "
)
"""For `bytes.translate`, which takes a tenth of the time: letters folded, separators as spaces."""


class Text(msgspec.Struct, frozen=True, gc=False):
    """A document's text as both indexes take it, tokens between spaces; `parts` of CamelCase."""

    words: str
    parts: str


class Term(msgspec.Struct, frozen=True):
    """One thing to look for: `tokens` next to each other in one field, with `prefix` the last of
    them only begun. `shown` are its words, folded, for finding the place in a text."""

    tokens: tuple[str, ...]
    prefix: bool
    shown: tuple[str, ...]


def fold(text: str) -> str:
    """The text without differences of case, compatibility and accents; otherwise as it was."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", _plain(text))


def _plain(text: str) -> str:
    """Decomposed, and folded as far as it can be a character at a time."""
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFKD", decomposed).translate(_FOLDING)


def text(original: str) -> Text:
    """What is indexed of a text."""
    if original.isascii():
        words, spelt = original.encode("ascii").translate(_ASCII).decode("ascii"), original
    else:
        words = _PAIRED.sub(_pairs, fold(original).translate(_SPLITTING))
        spelt = unicodedata.normalize("NFKD", original).translate(_FOLDING)
    if _has_long(words):
        words = _LONG.sub(r"\1 ", words)
    return Text(words, " ".join(_camel_parts(spelt)) if _is_camel(spelt) else "")


def _has_long(words: str) -> bool:
    """Whether a word is longer than `LONGEST`."""
    hops = _HOPS.match(words)
    return len(words) - (hops.end() if hops else 0) > LONGEST


def _pairs(run: re.Match[str]) -> str:
    return f" {' '.join(_paired(run[0]))} "


def _paired(run: str) -> Iterator[str]:
    for start in range(len(run)):
        yield run[start : start + 2]


def _is_camel(spelt: str) -> bool:
    if spelt == spelt.lower():  # most texts without capitals, at a tenth of the time
        return False
    shape = spelt.encode("utf-8", "replace").translate(_SHAPE)
    return b"aA" in shape or b"AAa" in shape


def _camel_parts(spelt: str) -> Iterator[str]:
    for word in _ASCII_WORD.findall(spelt):
        if not word[1:].islower() and len(word) <= LONGEST and _is_camel(word):
            for part in _CAMEL_PARTS.findall(word):
                yield part.lower()


def term(typed: str, *, prefix: bool) -> Term | None:
    """What to look for; None where nothing in it is indexed."""
    shown = fold(typed).translate(_SPLITTING).split()
    if not shown:
        return None
    segments = [match for word in shown for match in _SEGMENTS.finditer(word)]
    *before, last = segments
    tokens = [token for segment in before for token in _tokens(segment)]
    if not last[1]:
        tokens += _tokens(last)
    elif len(last[0]) == 1:
        tokens.append(last[0])
        prefix = True
    else:
        tokens += [pair for pair in _paired(last[0]) if len(pair) == 2]
        prefix = False  # the last sign begins a pair, whatever follows it
    return Term(tuple(tokens), prefix, tuple(shown))


def _tokens(segment: re.Match[str]) -> Iterator[str]:
    word = segment[0]
    if segment[1]:
        yield from _paired(word)
        return
    for start in range(0, len(word), LONGEST):
        yield word[start : start + LONGEST]
