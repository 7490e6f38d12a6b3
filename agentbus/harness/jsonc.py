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
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR: Final = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")


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
    """A value: an object or array has `entries`."""

    start: int
    end: int
    data: Any
    entries: list[Entry] | None = None

    def member(self, key: str) -> Entry | None:
        """The one that counts, which is the last."""
        found = [entry for entry in self.entries or () if entry.key == key]
        return found[-1] if found and isinstance(self.data, dict) else None


def parse(text: str) -> Node:
    """The one value that the text holds. Raises NotJson."""
    try:
        return _Parser(text).document()
    except RecursionError:
        raise NotJson("it is nested too deeply") from None


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def document(self) -> Node:
        self._skip()
        node = self._value()
        self._skip()
        if self._at < len(self._text):
            raise self._wrong("there is more after the value")
        return node

    def _skip(self) -> None:
        found = _TRIVIA.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _value(self) -> Node:
        match self._peek():
            case "{":
                return self._object()
            case "[":
                return self._array()
            case '"':
                return self._scalar(_STRING)
            case _:
                return self._scalar(_SCALAR)

    def _scalar(self, form: re.Pattern[str]) -> Node:
        found = form.match(self._text, self._at)
        if found is None:
            raise self._wrong("a value is missing or is not JSON")
        try:
            data = json.loads(found.group())
        except ValueError:
            raise self._wrong("this is no JSON value") from None
        self._at = found.end()
        return Node(found.start(), found.end(), data)

    def _object(self) -> Node:
        start = self._at
        entries = self._entries("}", self._member)
        data = {entry.key: entry.value.data for entry in entries}
        return Node(start, self._at, data, entries)

    def _array(self) -> Node:
        start = self._at
        entries = self._entries("]", self._element)
        return Node(start, self._at, [entry.value.data for entry in entries], entries)

    def _member(self) -> Entry:
        start = self._at
        if self._peek() != '"':
            raise self._wrong("a key in double quotes is missing")
        key = self._scalar(_STRING).data
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
