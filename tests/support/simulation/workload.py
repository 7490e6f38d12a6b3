"""What all agents know: the channels, how fast things go, and which errors another try mends."""

from __future__ import annotations

from typing import Final

from tests.support.simulation.clients import Result
from tests.support.simulation.records import require

CHANNELS: Final = ("general", "side/1", "memory")
"""The first and the last every bus has; the last is for memories."""

SIDE: Final = CHANNELS[1]
MEMORIES: Final = CHANNELS[-1]

PACES: Final = (0.1, 0.3, 1.0)
"""Seconds between two things that an agent does, about."""

PASSING: Final = frozenset(
    {
        "rate_limited",
        "storage_error",
        "recovering",
        "unavailable",
        "inspection_unavailable",
        "stale_attachment",
        "session_already_connected",
    }
)
"""Errors that faults around us explain, and that another try mends."""

FULL: Final = "capacity_exhausted"
"""Not mended by another try: memories and receipts take it all."""

MISSING: Final = "not_found"
DENIED: Final = "inspection_rejected"
USED: Final = "operation_id_conflict"

GIVEN_UP: Final = "keeps dying"
"""What whoever had started the daemon is told, with `internal`, when faults come too fast."""


def code_of(result: Result, *more: str) -> str | None:
    """The error's code; None where it worked. Raises Violation at one that nothing explains."""
    if "error" not in result:
        return None
    error = result["error"]
    explained = error["code"] in PASSING or error["code"] in more or GIVEN_UP in error["message"]
    require(explained, "refused", result)
    return str(error["code"])


def word(name: str, kind: str, count: int) -> str:
    """One that no other message has."""
    return f"{name.replace('-', '')}{kind}{count}"
