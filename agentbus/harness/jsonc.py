"""JSON as people keep it in configuration files, with where each part stands; pure.

Comments (`//`, `/* */`) and a trailing comma are allowed, as several harnesses allow them. Only
places and values are told: whoever edits, edits the text, so that the rest stays as it was written.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec

_TRIVIA: Final = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)


class NotJson(Exception):
    """The text is none; says where."""


class Entry(msgspec.Struct):
    """A member or an element: from `start` (its key's) on, up to `end` of its value; `comma` is
    where the one behind it stands."""

    start: int
    value: Node
    key: str | None = None
    comma: int | None = None

    @property
    def end(self) -> int:
        """Of the value."""
        return self.value.end


class Node(msgspec.Struct):
    """A value, and where it stands in the text."""

    text: str
    start: int
    end: int
    data: Any

    @property
    def entries(self) -> list[Entry]:
        """Of an object or array, found when they are asked for: files may be large."""
        return _Parser(self.text, self.start).entries()

    def member(self, key: str) -> Entry | None:
        """The one that counts, which is the last."""
        if not isinstance(self.data, dict) or key not in self.data:
            return None
        return next(entry for entry in reversed(self.entries) if entry.key == key)


def parse(text: str) -> Node:
    """The one value that the text holds. Raises NotJson."""
    try:
        return _Parser(text).document()
    except RecursionError:
        raise NotJson("it is nested too deeply") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_PLAIN: Final = json.JSONDecoder(parse_constant=_no_constant)
"""Reads what has no comments, which is most of most files, much faster than is done here."""


class _Parser:
    def __init__(self, text: str, at: int = 0) -> None:
        self._text = text
        self._at = at

    def document(self) -> Node:
        self._skip()
        node = self._value()
        self._skip()
        if self._at < len(self._text):
            raise self._wrong("there is more after the value")
        return node

    def entries(self) -> list[Entry]:
        """Of the value that stands here."""
        match self._peek():
            case "{":
                return self._entries("}", self._member)
            case "[":
                return self._entries("]", self._element)
            case _:
                return []

    def _skip(self) -> None:
        found = _TRIVIA.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _value(self) -> Node:
        start = self._at
        try:
            data, self._at = _PLAIN.raw_decode(self._text, start)
        except ValueError:
            data = self._commented()
        return Node(self._text, start, self._at, data)

    def _commented(self) -> Any:
        """What is not plain JSON, but holds comments or trailing commas."""
        match self._peek():
            case "{":
                members = self._entries("}", self._member)
                return {entry.key: entry.value.data for entry in members}
            case "[":
                return [entry.value.data for entry in self._entries("]", self._element)]
            case _:
                raise self._wrong("a value is missing or is not JSON")

    def _member(self) -> Entry:
        start = self._at
        if self._peek() != '"':
            raise self._wrong("a key in double quotes is missing")
        key = self._value().data
        self._skip()
        if self._peek() != ":":
            raise self._wrong("a colon is missing")
        self._at += 1
        self._skip()
        return Entry(start, self._value(), key)

    def _element(self) -> Entry:
        return Entry(self._at, self._value())

    def _entries(self, close: str, read: Any) -> list[Entry]:
        """Everything between the brackets, both of which are passed."""
        self._at += 1
        entries: list[Entry] = []
        self._skip()
        while self._peek() != close:
            if entries and entries[-1].comma is None:
                raise self._wrong("a comma or a closing bracket is missing")
            entries.append(read())
            self._skip()
            if self._peek() == ",":
                entries[-1].comma = self._at
                self._at += 1
                self._skip()
        self._at += 1
        return entries

    def _wrong(self, what: str) -> NotJson:
        line = self._text.count("\n", 0, self._at) + 1
        column = self._at - self._text.rfind("\n", 0, self._at)
        return NotJson(f"line {line}, column {column}: {what}")
