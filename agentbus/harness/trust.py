"""Hooks that Codex has not trusted: it passes them over without a word.

Its user is asked at its start (or types `/hooks`), never in `codex exec`; what was answered is in
config.toml, as Codex 0.171 was seen to read it:

    [hooks.state."/home/sam/.codex/hooks.json:stop:0:0"]     file, event, group, hook
    trusted_hash = "sha256:..."
    enabled = false                                          where it was switched off since

Whether the hash is that of the hook as it is now only Codex can tell, and is not looked at.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

from agentbus.harness import json_edit, toml_edit
from agentbus.harness.changes import JsonHooks


def is_trusted(settings: str | None, path: str, hooks: str | None, change: JsonHooks) -> bool:
    """Whether every hook of ours of one event in the file at `path`, whose text is `hooks`, was
    trusted, and none switched off, by the text of config.toml. Raises NotToml and NotJson."""
    known = json_edit.find(toml_edit.load(settings or ""), ("hooks", "state"))
    states = known if isinstance(known, dict) else {}
    event = re.sub(r"(?<!^)(?=[A-Z])", "_", change.event).lower()
    return all(
        any(_trusts(states.get(f"{each}:{event}:{group}:{hook}")) for each in _names(path))
        for group, hook in change.places(hooks)
    )


def _names(path: str) -> Iterable[str]:
    """A directory that CODEX_HOME names is resolved first."""
    return path, os.path.realpath(path)


def _trusts(state: Any) -> bool:
    return isinstance(state, dict) and "trusted_hash" in state and state.get("enabled") is not False
