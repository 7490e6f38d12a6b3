"""Limits of the bus that a seed makes small, so that few messages reach what is behind them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from types import ModuleType
from typing import Any, Final
from unittest.mock import patch

from agentbus.config import Settings
from agentbus.gateway import lanes, push, reports
from agentbus.mirror import read
from agentbus.projector import pipeline, recover, writes
from agentbus.writer import capacity, retention
from agentbus.writer import core as writer

KNOBS: Final[tuple[tuple[ModuleType, str, tuple[int, ...]], ...]] = (
    (lanes, "CREDIT_OPERATIONS", (1, 3, 2048)),
    (push, "CHUNK_MESSAGES", (1, 3, 256)),
    (push, "LINE_BYTES", (100, 2000, 1024 * 1024)),
    (reports, "MOST", (1, 3, 100)),
    (read, "FIRST_STEP", (1, 3, 16)),
    (recover, "STEP_ROWS", (1, 4, 256)),
    (writes, "IN_FLIGHT", (1, 2, 4)),
    (pipeline, "SURVEY_CHANNELS", (1, 64)),
    (writer, "MAX_OPERATIONS", (1, 4, 256)),
    (retention, "CHUNK_ROWS", (1, 7, 512)),
    (capacity, "MIB", (512, 2048, 1024 * 1024)),
    (capacity, "MEASURABLE", (2000, 4 * 1024 * 1024)),
)
"""Module, constant, and what it may be; the last is about what it is."""


@contextmanager
def turned(chance: Random) -> Iterator[dict[str, int]]:
    """Within it they are as chance wills; half of the times all are as usual."""
    chosen: dict[str, int] = {}
    with ExitStack() as stack:
        if chance.random() < 0.5:
            for module, name, values in KNOBS:
                chosen[name] = chance.choice(values)
                stack.enter_context(patch.object(module, name, chosen[name]))
        yield chosen


def settings(chance: Random) -> Settings:
    """Rates out of the way, windows of any size."""
    values: dict[str, Any] = {
        "data_directory": "/sim",
        "send_messages_per_second": 10_000,
        "send_kib_per_second": 65_536,
        "prefetch_messages": chance.choice((1, 2, 5, 256)),
        "sqlite_synchronous": chance.choice(("full", "normal")),
    }
    return Settings(**values)
