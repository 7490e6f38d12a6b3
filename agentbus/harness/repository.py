"""The file of a repository: the agent that works there, and the channels it joins."""

from __future__ import annotations

import os
from typing import Final

from agentbus.harness.changes import JsonMember
from agentbus.harness.programs import Target

FILE: Final = ".agentbus.json"
OWNER: Final = "repository"
"""In the record, before the root's path."""

GENERAL: Final = "general"
MEMORY: Final = "memory"
"""Channels that every bus has."""


def own_channels(hint: str | None) -> list[str]:
    """What a repository joins unless somebody says otherwise: one of its own, and those of all."""
    return [GENERAL, *([f"{GENERAL}/{hint}"] if hint else []), MEMORY]


def owner(root: str) -> str:
    """Whose the file is, in the record."""
    return f"{OWNER} {root}"


def target(root: str, agent: str, channels: list[str]) -> Target:
    """The file, with what belongs in it."""
    changes = (JsonMember("agent", agent), JsonMember("channels", channels))
    return Target(os.path.join(root, FILE), changes)
