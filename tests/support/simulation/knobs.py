"""Limits of the bus that a seed makes small, so that few messages reach what is behind them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from types import ModuleType
from typing import Any, Final
from unittest.mock import patch

from agentbus.adapter import reports as renewals
from agentbus.config import Settings
from agentbus.gateway import lanes, push, reports
from agentbus.indexer import keeper
from agentbus.mirror import read
from agentbus.model import session
from agentbus.projector import pipeline, recover, writes
from agentbus.search.fts5 import write as index
from agentbus.writer import ages, capacity, expiry, retention, work
from agentbus.writer import core as writer
from tests.support.simulation import records
from tests.support.simulation.records import Terms

SMALL_PARTITIONS: Final = {"ordinary": (5, 4096), "memory": (3, 2048)}

KNOBS: Final[tuple[tuple[ModuleType, str, tuple[Any, ...]], ...]] = (
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
    (keeper, "STEP_ROWS", (1, 4, 2048)),
    (index, "FULL", (SMALL_PARTITIONS, index.FULL)),
    (capacity, "MIB", (512, 1024, 2048, 1024 * 1024)),
    (capacity, "MEASURABLE", (2000, 4 * 1024 * 1024)),
)
"""Module, constant, and what it may be; the last is about what it is."""

HOURS: Final = (4_000, 20_000, session.HOUR_MS)
"""Milliseconds of what the bus takes for an hour: ages and lifetimes are counted in them."""


@contextmanager
def turned(chance: Random) -> Iterator[dict[str, Any]]:
    """Within it they are as chance wills; a third of the times all are as usual."""
    chosen: dict[str, Any] = {}
    with ExitStack() as stack:

        def turn(module: ModuleType, name: str, value: Any) -> None:
            stack.enter_context(patch.object(module, name, value))

        if chance.random() < 0.67:
            for module, name, values in KNOBS:
                chosen[name] = chance.choice(values)
                turn(module, name, chosen[name])
            chosen["HOUR_MS"] = hour = chance.choice(HOURS)
            for module in (session, work, expiry, retention):
                turn(module, "HOUR_MS", hour)
            turn(ages, "SUSPENDED_SECONDS", hour / 1000)
            turn(ages, "JUMP_SECONDS", hour / 12_000)
            turn(renewals, "RENEW_SECONDS", hour / 60_000)
        yield chosen


def terms(settings: Settings) -> Terms:
    """What is kept for how long, as the knobs are now."""
    return records.terms(settings, retention.HOUR_MS, capacity.MIB)


def settings(chance: Random) -> Settings:
    """Rates out of the way, windows of any size, lifetimes and budgets that are reached or not."""
    values: dict[str, Any] = {
        "data_directory": "/sim",
        "send_messages_per_second": 10_000,
        "send_kib_per_second": 65_536,
        "prefetch_messages": chance.choice((1, 2, 5, 256)),
        "sqlite_synchronous": chance.choice(("full", "normal")),
        "message_retention_hours": chance.choice((1, 3, 168)),
        "cursor_idle_hours": chance.choice((1, 4, 72)),
        "dedup_retention_hours": chance.choice((1, 4, 72)),
        "tombstone_min_hours": chance.choice((1, 3, 72)),
        "cleanup_interval_seconds": chance.choice((1, 5, 60)),
        "cleanup_free_percent": chance.choice((5, 25, 60)),
        "redis_budget_mib": chance.choice((64, 128, 512)),
        "sqlite_budget_mib": chance.choice((64, 128, 2048)),
        "inspection_command": chance.choice(([], [], ["inspect"])),
    }
    return Settings(**values)
