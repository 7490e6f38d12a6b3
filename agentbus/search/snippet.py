"""The place in a text that a search shows: a line of it, around the first thing that was found."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from agentbus.search import normalise
from agentbus.search.normalise import Term

WIDTH: Final = 200
BEFORE: Final = 60
"""Characters of a snippet, and of it before the place."""

NEARBY: Final = 20
"""Characters that may be left out so that it begins at a word."""

SCANNED: Final = 65_536
"""Characters looked at in a text that is not of ASCII alone; each is folded by itself."""

_BETWEEN: Final = r"[\W_]{0,8}"


class Finder:
    """Makes the snippets of one search."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self._words = [term.shown[0] for term in terms if len(term.shown) == 1]
        shapes = [_BETWEEN.join(map(re.escape, term.shown)) for term in terms if term.shown[1:]]
        self._phrases = re.compile("|".join(shapes)) if shapes else None

    def snippet(self, text: str) -> str:
        """Some `WIDTH` characters in one line; an ellipsis where the text goes on."""
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
        start, end = _window(text, self._place(text))
        line = " ".join(text[start:end].split())
        return f"{'…' if start else ''}{line}{'…' if end < len(text) else ''}"

    def _place(self, text: str) -> int:
        if text.isascii():
            return max(0, self._first(text.lower()))
        folded, origins = _fold(text[:SCANNED])
        found = self._first(folded)
        return origins[found] if found >= 0 else 0

    def _first(self, folded: str) -> int:
        """Where the first of the terms is; -1: nowhere."""
        places = [place for word in self._words if (place := folded.find(word)) >= 0]
        if self._phrases is not None and (found := self._phrases.search(folded)):
            places.append(found.start())
        return min(places, default=-1)


def _fold(text: str) -> tuple[str, list[int]]:
    """The folded text, and where each of its characters comes from."""
    pieces: list[str] = []
    origins: list[int] = []
    known: dict[str, str] = {}
    for place, character in enumerate(text):
        piece = known.get(character)
        if piece is None:
            piece = known[character] = normalise.fold(character)
        pieces.append(piece)
        origins += [place] * len(piece)
    return "".join(pieces), origins


def _window(text: str, place: int) -> tuple[int, int]:
    """What to show; it begins at a word where one begins nearby."""
    if len(text) <= WIDTH:
        return 0, len(text)
    start = max(0, min(place - BEFORE, len(text) - WIDTH))
    if start:
        space = text.find(" ", start, min(start + NEARBY, place))
        start = space + 1 if space >= 0 else start
    return start, min(len(text), start + WIDTH)
