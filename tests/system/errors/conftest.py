"""Buses on which something is wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agentbus.config import Settings
from agentbus.supervisor.redis_discovery import discover
from tests.support.daemon import Daemon

Place = Callable[..., Daemon]


@pytest.fixture
def place() -> Iterator[Place]:
    """Makes places in which nothing runs yet, with settings of their own."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(Daemon(**settings))


@pytest.fixture(scope="module")
def bus() -> Iterator[Daemon]:
    """A bus on which nothing is wrong but a small rate, and a hook with opinions."""
    hook = "import json, sys; c = json.load(sys.stdin)['payload']['content']; " + (
        "print(json.dumps({'decision': 'deny', 'reason': 'not nice'} if c == 'rude' else "
        "{'decision': 'allow'})) if c != 'odd' else print('what?')"
    )
    with Daemon(inspection_command=[sys.executable, "-Ic", hook]) as daemon:
        daemon.start()
        yield daemon


class Stubborn:
    """A Redis server that starts once, and after `refuse` only seems to."""

    def __init__(self, directory: str) -> None:
        self._mark = Path(directory, "refuse")
        self.executable = os.path.join(directory, "redis")
        server = discover(Settings()).executable
        script = f'#!/bin/sh\n[ "$1" = --version ] || [ ! -e {self._mark} ] || exec sleep 600\n'
        Path(self.executable).write_text(f'{script}exec "{server}" "$@"\n')
        os.chmod(self.executable, 0o700)

    def refuse(self) -> None:
        """From now on."""
        self._mark.touch()


@pytest.fixture
def stubborn(tmp_path: Path) -> Stubborn:
    """For the setting `redis_executable`."""
    return Stubborn(str(tmp_path))


def inject(bus: Daemon, program: str) -> dict[str, Any]:
    """An environment in which each interpreter of the bus runs a program before all else."""
    Path(bus.directory, "sitecustomize.py").write_text(program)
    return {**bus.environment, "PYTHONPATH": bus.directory}
