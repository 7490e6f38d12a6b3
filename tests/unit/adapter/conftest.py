"""Worlds for the adapter's core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentbus.adapter.identity import Given, Project
from agentbus.config import Settings
from tests.support.adapter_world import World


@pytest.fixture
def make() -> Callable[..., World]:
    """A world by what was given at start; not begun."""

    def build(settings: Settings | None = None, project: Project | None = None, **given: Any):
        return World(
            Given(fallback="random", **given),
            project or Project("/code/repo", "repo"),
            settings or Settings(),
        )

    return build


@pytest.fixture
def world(make: Callable[..., World]) -> World:
    """A running daemon, a greeted adapter."""
    return make().begin().greet()
