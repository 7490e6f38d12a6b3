"""What is ours in a harness' files, and how it is put there and taken out again; pure.

A change works on the text of a whole file, None where there is no file. `apply` is done when it is
done: applied twice it changes nothing. `undo` puts back what stood in its place in the `original`
text, None where there was no file; the rest of the text is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, Protocol

import msgspec

from agentbus.harness import json_edit, toml_edit
from agentbus.harness.json_edit import MISSING, NotEditable

SERVER: Final = "agentbus"
"""The name under which harnesses know the MCP server."""

BIND: Final = "bind_caller"
HOOK: Final = "hook"
"""The command that harnesses run: `agentbus hook NAME`."""


class Change(Protocol):
    """One thing of ours in one file."""

    def apply(self, text: str | None) -> str | None:
        """With it. Raises NotEditable, NotJson and NotToml."""

    def undo(self, text: str | None, original: str | None) -> str | None:
        """Without it. Raises as `apply` does."""

    def is_there(self, text: str | None) -> bool:
        """Whether it is in the file, perhaps not as it should be."""


class JsonServer(msgspec.Struct, frozen=True):
    """The entry of the MCP server in a JSON file; what a user added to it stays."""

    holder: str
    values: dict[str, Any]

    @property
    def _path(self) -> json_edit.Path:
        return (self.holder, SERVER)

    def apply(self, text: str | None) -> str | None:
        """An entry of that name that starts something else is not touched."""
        text = _json(text)
        known = json_edit.get(text, self._path)
        wanted = _merged(known, self.values)
        return text if known == wanted else json_edit.put(text, self._path, wanted)

    def undo(self, text: str | None, original: str | None) -> str | None:
        """The entry is what it was."""
        return _restore(text, original, self._path)

    def is_there(self, text: str | None) -> bool:
        """By its name and what it starts."""
        return text is not None and _starts_us(self.known(text))

    def known(self, text: str | None) -> Any:
        """The entry as it is, or MISSING."""
        return MISSING if text is None else json_edit.get(text, self._path)


class JsonHooks(msgspec.Struct, frozen=True):
    """A group of hooks for one event, in the form that Claude Code has made common."""

    event: str
    group: dict[str, Any]

    @property
    def _path(self) -> json_edit.Path:
        return ("hooks", self.event)

    def apply(self, text: str | None) -> str | None:
        """In the place of an older one of ours, else behind the others."""
        text = _json(text)
        known = json_edit.get(text, self._path)
        if known is MISSING:
            return json_edit.put(text, self._path, [self.group])
        ours = [index for index, group in enumerate(_list(known)) if _hooks(group)]
        if ours and known[ours[0]] == self.group and len(ours) == 1:
            return text
        for index in reversed(ours):
            text = _without_hooks(text, (*self._path, index))
        return json_edit.append(text, self._path, self.group)

    def undo(self, text: str | None, original: str | None) -> str | None:
        """What was ours in the original comes back; hooks of others stay."""
        if text is None:
            return None
        known = json_edit.get(text, self._path)
        for index in reversed(range(len(_list(known)))):
            if _hooks(known[index]):
                text = _without_hooks(text, (*self._path, index))
        before = MISSING if original is None else json_edit.get(original, self._path)
        for group in _list(before):
            if _hooks(group):
                text = json_edit.append(text, self._path, group)
        return _pruned(text, original, self._path)

    def is_there(self, text: str | None) -> bool:
        """By what the hooks do."""
        return bool(self.places(text))

    def places(self, text: str | None) -> list[tuple[int, int]]:
        """Of ours: the group's index, and the hook's in it."""
        groups = [] if text is None else _list(json_edit.get(text, self._path))
        return [(number, hook) for number, group in enumerate(groups) for hook in _hooks(group)]


class TomlServer(msgspec.Struct, frozen=True):
    """The table of the MCP server in a TOML file."""

    holder: str
    values: dict[str, Any]

    @property
    def _path(self) -> tuple[str, str]:
        return (self.holder, SERVER)

    def apply(self, text: str | None) -> str | None:
        """Written anew, with what a user added to it, where it has to change."""
        text = text or ""
        known = json_edit.find(toml_edit.load(text), self._path)
        wanted = _merged(known, self.values)
        return text if known == wanted else toml_edit.put_table(text, self._path, wanted)

    def undo(self, text: str | None, original: str | None) -> str | None:
        """The table is what it was."""
        if text is None:
            return None
        known = json_edit.find(toml_edit.load(text), self._path)
        before = json_edit.find(toml_edit.load(original or ""), self._path)
        if known == before or not _starts_us(known):
            return text
        text = toml_edit.drop_table(text, self._path)
        if before is not MISSING:
            return toml_edit.put_table(text, self._path, before)
        return text if text.strip() or original is not None else None

    def is_there(self, text: str | None) -> bool:
        """By its name and what it starts."""
        if text is None:
            return False
        return _starts_us(self.known(text))

    def known(self, text: str | None) -> Any:
        """The entry as it is, or MISSING."""
        return json_edit.find(toml_edit.load(text or ""), self._path)


class JsonMember(msgspec.Struct, frozen=True):
    """A member at the top of a JSON file."""

    key: str
    value: Any

    def apply(self, text: str | None) -> str | None:
        """With that value."""
        text = _json(text)
        known = json_edit.get(text, (self.key,))
        return text if known == self.value else json_edit.put(text, (self.key,), self.value)

    def undo(self, text: str | None, original: str | None) -> str | None:
        """The member is what it was."""
        return _restore(text, original, (self.key,))

    def is_there(self, text: str | None) -> bool:
        """By its key."""
        return text is not None and json_edit.get(text, (self.key,)) is not MISSING


class OwnFile(msgspec.Struct, frozen=True):
    """A file that is ours as a whole; its first line says so."""

    content: str

    def apply(self, text: str | None) -> str | None:
        """In the place of an older one of ours."""
        if text is not None and not self.is_there(text):
            raise NotEditable("it is there and not ours; move it out of the way")
        return self.content

    def undo(self, text: str | None, original: str | None) -> str | None:
        """A file that somebody has made their own stays."""
        return original if self.is_there(text) else text

    def is_there(self, text: str | None) -> bool:
        """By its first line."""
        return text is not None and text.splitlines()[:1] == self.content.splitlines()[:1]


def applied(changes: Iterable[Change], text: str | None) -> str | None:
    """A text with all of them."""
    for change in changes:
        text = change.apply(text)
    return text


def undone(changes: Iterable[Change], text: str | None, original: str | None) -> str | None:
    """A text without any of them."""
    for change in reversed(list(changes)):
        text = change.undo(text, original)
    return text


# ---- JSON


def _json(text: str | None) -> str:
    return text if text is not None and text.strip() else "{}\n"


def _list(value: Any) -> list[Any]:
    if value is MISSING:
        return []
    if not isinstance(value, list):
        raise NotEditable("the hooks of an event are not a list")
    return value


def _restore(text: str | None, original: str | None, path: json_edit.Path) -> str | None:
    if text is None:
        return None
    known = json_edit.get(text, path)
    before = MISSING if original is None or not original.strip() else json_edit.get(original, path)
    if before is not MISSING:
        return text if known == before else json_edit.transplant(text, path, original or "")
    if known is not MISSING:
        text = json_edit.drop(text, path)
    return _pruned(text, original, path[:-1])


def _pruned(text: str, original: str | None, path: json_edit.Path) -> str | None:
    """Without the empty holders that were not there before; None where nothing is left."""
    first = "{}" if original is None or not original.strip() else original
    while path and json_edit.get(text, path) in ({}, []):
        if json_edit.get(first, path) is not MISSING:
            return text
        text, path = json_edit.drop(text, path), path[:-1]
    return None if original is None and text.strip() == "{}" else text


def _merged(known: Any, values: dict[str, Any]) -> dict[str, Any]:
    if known is MISSING:
        return values
    if not _starts_us(known):
        raise NotEditable(
            f"a server named {SERVER} is there that starts something else; rename or remove it"
        )
    both = {**known, **values}
    for key in ("env", "environment"):
        if isinstance(known.get(key), dict) and key in values:
            both[key] = {**known[key], **values[key]}
    return both


def _starts_us(entry: Any) -> bool:
    """Whether a server's entry starts `agentbus mcp`, in any of the ways it can be written."""
    if not isinstance(entry, dict):
        return False
    command, arguments = entry.get("command", []), entry.get("args", [])
    words = [*(command if isinstance(command, list) else [command]), *_words(arguments)]
    return "mcp" in words and any("agentbus" in str(word) for word in words)


def _words(arguments: Any) -> list[Any]:
    return arguments if isinstance(arguments, list) else []


# ---- hooks


_COMMAND: Final = re.compile(rf"agentbus['\"]? {HOOK} [a-z-]+")


def _is_ours(hook: Any) -> bool:
    if not isinstance(hook, dict):
        return False
    if hook.get("type") == "mcp_tool":
        return hook.get("server") == SERVER and hook.get("tool") == BIND
    return _COMMAND.search(str(hook.get("command", ""))) is not None


def _hooks(group: Any) -> list[int]:
    """Which of a group's hooks are ours."""
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return [n for n, hook in enumerate(hooks if isinstance(hooks, list) else []) if _is_ours(hook)]


def _without_hooks(text: str, path: json_edit.Path) -> str:
    """A group that had none but ours goes as a whole."""
    group = json_edit.get(text, path)
    ours = _hooks(group)
    if len(ours) == len(group["hooks"]):
        return json_edit.drop(text, path)
    for number in reversed(ours):
        text = json_edit.drop(text, (*path, "hooks", number))
    return text
