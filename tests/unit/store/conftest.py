"""A bus that the writer's core has filled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agentbus.store.read import Reader
from tests.support.writer_world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path) as made:
        yield made


@pytest.fixture
def reader(world: World) -> Iterator[Reader]:
    with closing(Reader(world.path)) as made:
        yield made
