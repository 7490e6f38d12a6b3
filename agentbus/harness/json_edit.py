"""Edits of JSON text that leave everything else as it was written; pure.

A path is made of keys and, in arrays, of indices. Each edit is checked: the text that comes out
holds what the edited data would, else it raises.
"""

from __future__ import annotations

import copy
import json
import re
from typing import Any, Final

from agentbus.harness.jsonc import Entry, Node, NotJson, parse

Path = tuple[str | int, ...]

MISSING: Final = object()
"""What `get` says of a path that leads nowhere."""

UNIT: Final = "  "
"""Indentation where the text shows none."""


class NotEditable(Exception):
    """The text does not have the shape that the edit needs."""


def get(text: str, path: Path) -> Any:
    """The value at a path, or MISSING. Raises NotJson."""
    return find(parse(text).data, path)


def find(data: Any, path: Path) -> Any:
    """The value at a path of data, or MISSING."""
    for key in path:
        if isinstance(key, str):
            data = data.get(key, MISSING) if isinstance(data, dict) else MISSING
        else:
            data = data[key] if isinstance(data, list) and key < len(data) else MISSING
    return data


def put(text: str, path: Path, value: Any) -> str:
    """With that value at the path; objects on the way are made. Raises NotEditable and NotJson."""
    root = parse(text)
    node, done = _descend(root, path)
    if len(done) == len(path):
        base = _indentation(text, node.start)
        made = text[: node.start] + _render(value, base, _unit(text, root)) + text[node.end :]
    else:
        rest = path[len(done) + 1 :]
        for key in reversed(rest):
            value = {key: value}
        made = _insert(text, root, node, path[len(done)], value)
    return _checked(made, _with(root.data, path, get(made, path)))


def transplant(text: str, path: Path, source: str) -> str:
    """With what another text has at the path, as it is written there."""
    there, path_there = _descend(parse(source), path)
    made = put(text, path, there.data)
    node, _ = _descend(parse(made), path_there)
    made = made[: node.start] + source[there.start : there.end] + made[node.end :]
    return _checked(made, parse(put(text, path, there.data)).data)


def append(text: str, path: Path, value: Any) -> str:
    """With one more element in the array at the path, which is made where there is none."""
    root = parse(text)
    known = find(root.data, path)
    if known is MISSING:
        return put(text, path, [value])
    if not isinstance(known, list):
        raise NotEditable(f"{_shown(path)} is not a list")
    node, _ = _descend(root, path)
    made = _insert(text, root, node, len(known), value)
    return _checked(made, _with(root.data, path, [*known, value]))


def drop(text: str, path: Path) -> str:
    """Without what is at the path. Raises NotEditable where there is nothing."""
    root = parse(text)
    holder, done = _descend(root, path[:-1])
    key = path[-1]
    entries = holder.entries
    index = next((i for i, entry in enumerate(entries) if key in (entry.key, i)), None)
    if len(done) != len(path) - 1 or index is None:
        raise NotEditable(f"{_shown(path)} is not there")
    return _checked(_cut(text, holder, index), _without(root.data, path))


# ---- finding


def _descend(node: Node, path: Path) -> tuple[Node, Path]:
    """As far as the path leads. Raises NotEditable where it leads into what cannot hold it."""
    for number, key in enumerate(path):
        entry: Entry | None = None
        if isinstance(key, str):
            if not isinstance(node.data, dict):
                raise NotEditable(f"{_shown(path[:number])} is not an object")
            entry = node.member(key)
        elif isinstance(node.data, list) and key < len(node.data):
            entry = node.entries[key]
        if entry is None:
            return node, path[:number]
        node = entry.value
    return node, path


def _shown(path: Path) -> str:
    return ".".join(map(str, path)) or "the file"


# ---- text


def _insert(text: str, root: Node, holder: Node, key: str | int, value: Any) -> str:
    """Behind the last entry, in the way the others are written."""
    label = f"{json.dumps(key, ensure_ascii=False)}: " if isinstance(holder.data, dict) else ""
    entries = holder.entries
    if not entries:
        base = _indentation(text, holder.start)
        inner = base + _unit(text, root)
        kept = text[holder.start + 1 : holder.end - 1].rstrip()
        new = f"{kept}\n{inner}{label}{_render(value, inner, _unit(text, root))}\n{base}"
        return text[: holder.start + 1] + new + text[holder.end - 1 :]
    last = entries[-1]
    gap = text[last.end : holder.end - 1]
    at = last.end + len(gap.rstrip())
    own_line = text[text.rfind("\n", 0, last.start) + 1 : last.start]
    unit = _unit(text, root)
    on_one = bool(own_line.strip()) or "\n" not in text[holder.start : last.start]
    if on_one and "//" not in gap:  # such a comment lasts to the end of its line
        new = f" {label}{_compact(value)}"
    else:
        inner = _indentation(text, holder.start) + unit if on_one else own_line
        new = f"\n{inner}{label}{_render(value, inner, unit)}"
    before, behind = (",", "") if last.comma is None else ("", ",")
    return text[: last.end] + before + text[last.end : at] + new + behind + text[at:]


def _cut(text: str, holder: Node, index: int) -> str:
    entries = holder.entries
    entry = entries[index]
    before = entries[index - 1] if index else None
    floor = holder.start + 1 if before is None else (before.comma or before.end) + 1
    start = max(floor, floor + len(text[floor : entry.start].rstrip()))
    end = entry.end
    if entry.comma is not None:
        end = entry.comma + 1
    made = text[:start] + text[end:]
    if entry.comma is None and before is not None and before.comma is not None:
        made = made[: before.comma] + made[before.comma + 1 :]
    if len(entries) == 1:
        inside = made[holder.start + 1 : holder.end - 1 - (end - start)]
        if not inside.strip():
            closing = holder.end - 1 - (end - start)
            made = made[: holder.start + 1] + made[closing:]
    return made


def _render(value: Any, base: str, unit: str) -> str:
    if value in ([], {}):
        return json.dumps(value)
    text = json.dumps(value, ensure_ascii=False, indent=unit)
    return text.replace("\n", f"\n{base}")


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _indentation(text: str, at: int) -> str:
    """Of the line that a place is in."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    found = re.match(r"[ \t]*", line)
    return found.group() if found else ""


def _unit(text: str, root: Node) -> str:
    """One step of indentation, as the outermost entries show it."""
    for entry in root.entries:
        blank = text[text.rfind("\n", 0, entry.start) + 1 : entry.start]
        if blank and not blank.strip():
            return blank
    return UNIT


# ---- the same on data, to check against


def _checked(text: str, wanted: Any) -> str:
    try:
        found = parse(text).data
    except NotJson as problem:
        raise NotEditable(f"the edit went wrong ({problem})") from problem
    if found != wanted:
        raise NotEditable("the edit went wrong")
    return text


def _with(data: Any, path: Path, value: Any) -> Any:
    """A copy as far as the path leads; the rest is shared."""
    if not path:
        return value
    key, *rest = path
    made: Any = copy.copy(data)
    below = made.get(key, {}) if isinstance(made, dict) else made[key]
    made[key] = _with(below, tuple(rest), value)
    return made


def _without(data: Any, path: Path) -> Any:
    key, *rest = path
    made = copy.copy(data)
    if rest:
        made[key] = _without(made[key], tuple(rest))
    else:
        del made[key]
    return made
