"""What of ours is in a harness' files as they are now; nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from agentbus.errors import ConfigInvalid
from agentbus.harness import files
from agentbus.harness.changes import Change, JsonHooks, JsonServer, TomlServer
from agentbus.harness.json_edit import NotEditable
from agentbus.harness.jsonc import NotJson
from agentbus.harness.programs import HARNESSES, Harness, Machine, Start, Target
from agentbus.harness.toml_edit import NotToml
from agentbus.harness.trust import is_trusted

TRUSTING = "codex"
"""The harness that asks its user before it runs a hook."""


class Entry(msgspec.Struct, frozen=True):
    """How a harness starts the server. `variables` may hold secrets of others: never shown."""

    words: list[str]
    variables: Mapping[str, str] = {}
    disabled: bool = False

    def option(self, name: str) -> str | None:
        """What follows an option such as `--config`."""
        pairs = dict(zip(self.words, self.words[1:], strict=False))
        return pairs.get(name)


class State(msgspec.Struct, frozen=True):
    """Of one harness; `file` is where its server belongs, `lacking` are files without our
    hooks, `passed_over` such with hooks that nobody has trusted, which the harness does not run."""

    name: str
    title: str
    file: str
    entry: Entry | None = None
    lacking: list[str] = []
    passed_over: list[str] = []
    error: ConfigInvalid | None = None


def states(machine: Machine, start: Start) -> list[State]:
    """Of the harnesses that are found, in the order of `HARNESSES`."""
    return [look(each, machine, start) for each in HARNESSES if each.is_found(machine)]


def look(harness: Harness, machine: Machine, start: Start) -> State:
    """Of one, whether it is found or not."""
    targets = harness.targets(machine, start)
    state = State(harness.name, harness.title, targets[0].path)
    try:
        texts = [_text(target) for target in targets]
        entry = None
        lacking: list[str] = []
        for target, text in zip(targets, texts, strict=True):
            for change in target.changes:
                if isinstance(change, JsonServer | TomlServer):
                    entry = _entry(change, text, target)
                elif not _is_there(change, text, target) and target.path not in lacking:
                    lacking.append(target.path)
        passed_over = _passed_over(targets, texts) if harness.name == TRUSTING else []
    except ConfigInvalid as error:
        return msgspec.structs.replace(state, error=error)
    return msgspec.structs.replace(state, entry=entry, lacking=lacking, passed_over=passed_over)


def _text(target: Target) -> str | None:
    content = files.decode(target.path, files.read(target.path))
    return None if content is None or not content.text.strip() else content.text


def _passed_over(targets: list[Target], texts: list[str | None]) -> list[str]:
    """By the settings, which are in the first file."""
    return [
        target.path
        for target, text in zip(targets, texts, strict=True)
        for change in target.changes
        if isinstance(change, JsonHooks) and not is_trusted(texts[0], target.path, text, change)
    ]


def _entry(change: JsonServer | TomlServer, text: str | None, target: Target) -> Entry | None:
    return _read(change.known(text)) if _is_there(change, text, target) else None


def _is_there(change: Change, text: str | None, target: Target) -> bool:
    try:
        return change.is_there(text)
    except (NotJson, NotToml, NotEditable) as problem:
        raise ConfigInvalid(f"{target.path} cannot be read as what it is ({problem})") from problem


def _read(known: Any) -> Entry:
    """An entry that starts us is an object, whatever else is in it."""
    command = known.get("command", [])
    words = [*(command if isinstance(command, list) else [command]), *_list(known.get("args"))]
    given = known.get("env", known.get("environment"))
    variables = given if isinstance(given, dict) else {}
    return Entry(
        [str(word) for word in words],
        {str(name): str(value) for name, value in variables.items()},
        known.get("enabled") is False or known.get("disabled") is True,
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
