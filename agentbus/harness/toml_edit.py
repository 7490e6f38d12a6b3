"""A table of our own in TOML text, everything else left as it was written; pure.

The table is a block of lines at the end of the text. Each edit is checked with `tomllib`: what
comes out holds what was there and the table, or what was there without it, else it raises.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from agentbus.harness.json_edit import MISSING, NotEditable, find


class NotToml(Exception):
    """The text is none; says where."""


def load(text: str) -> dict[str, Any]:
    """The data of a text. Raises NotToml."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise NotToml(str(problem)) from problem


def put_table(text: str, path: tuple[str, ...], table: dict[str, Any]) -> str:
    """With that table at the path, in the place of one that is there."""
    data = load(text)
    if find(data, path) == table:
        return text
    if find(data, path) is not MISSING:
        text = drop_table(text, path)
    head = text if not text or text.endswith("\n") else text + "\n"
    gap = "\n" if head and not head.endswith("\n\n") else ""
    return _checked(head + gap + _block(path, table), _with(data, path, table))


def drop_table(text: str, path: tuple[str, ...]) -> str:
    """Without the table at the path and what is in it. Raises NotEditable."""
    data = load(text)
    lines = text.splitlines(keepends=True)
    spans = list(_spans(lines, path))
    if not spans:
        raise NotEditable(f"[{'.'.join(path)}] is not written as a table of its own")
    for start, end in reversed(spans):
        first = start
        if start and not lines[start - 1].strip() and _is_blank(lines[end : end + 1]):
            first = start - 1
        del lines[first:end]
    made = "".join(lines)
    if not _is_toml(made):
        raise NotEditable("the table cannot be edited by lines")
    kept, pruned = (_without(data, path, prune) for prune in (False, True))
    return _checked(made, kept if load(made) == kept else pruned)


def _spans(lines: list[str], path: tuple[str, ...]) -> list[tuple[int, int]]:
    """The blocks of lines that belong to the table or to one below it; comments and blank lines
    behind a block belong to what follows."""
    name = r"\s*\.\s*".join(
        rf"(?:{re.escape(part)}|\"{re.escape(part)}\"|'{re.escape(part)}')" for part in path
    )
    own = re.compile(rf"\s*\[\[?\s*{name}\s*(?:\.[^\]]*)?\]")
    spans: list[tuple[int, int]] = []
    start: int | None = None
    for number, line in enumerate([*lines, "["]):
        if not line.lstrip().startswith("["):
            continue
        if start is not None:
            spans.append((start, _trimmed(lines, start, number)))
        start = number if own.match(line) else None
    return spans


def _trimmed(lines: list[str], start: int, end: int) -> int:
    while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip()[0] == "#"):
        end -= 1
    return end


def _is_blank(lines: list[str]) -> bool:
    return not "".join(lines).strip()


def _block(path: tuple[str, ...], table: dict[str, Any]) -> str:
    lines = [
        f"[{'.'.join(map(_key, path))}]",
        *(f"{_key(k)} = {_value(v)}" for k, v in table.items()),
    ]
    return "".join(f"{line}\n" for line in lines)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: Any) -> str:
    """Strings of JSON are strings of TOML, but for DEL."""
    match value:
        case dict():
            inner = ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case list():
            return f"[{', '.join(map(_value, value))}]"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case bool() | int() | float():
            return json.dumps(value)
        case _:
            raise NotEditable(f"a {type(value).__name__} in the table cannot be written anew")


def _is_toml(text: str) -> bool:
    try:
        load(text)
    except NotToml:
        return False
    return True


def _checked(text: str, wanted: dict[str, Any]) -> str:
    try:
        found = load(text)
    except NotToml as problem:
        raise NotEditable(f"the table cannot be edited by lines ({problem})") from problem
    if found != wanted:
        raise NotEditable("the table cannot be edited by lines")
    return text


def _with(data: dict[str, Any], path: tuple[str, ...], table: dict[str, Any]) -> dict[str, Any]:
    head, *rest = path
    below = data.get(head, {})
    if not rest:
        return {**data, head: table}
    if not isinstance(below, dict):
        raise NotEditable(f"{head} is not a table")
    return {**data, head: _with(below, tuple(rest), table)}


def _without(data: dict[str, Any], path: tuple[str, ...], prune: bool) -> dict[str, Any]:
    """Tables on the way that were there by it alone are gone too, if wanted."""
    head, *rest = path
    below = _without(data[head], tuple(rest), prune) if rest else {}
    others = {key: value for key, value in data.items() if key != head}
    return {**others, head: below} if below or (rest and not prune) else others
