"""What of the messages read makes one page: as many as are asked for and fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agentbus.config import MIB
from agentbus.model.stream import Entry

SLACK_BYTES: Final = MIB
"""Read beyond what is asked for, the largest envelope there is: so that what does not fit is seen,
and whether there is more is exact."""


def fitting(entries: Iterable[Entry], limit: int, max_bytes: int) -> list[Entry]:
    """The first of them; one that is larger alone comes alone."""
    chosen: list[Entry] = []
    room = max_bytes
    for entry in entries:
        room -= len(entry.envelope)
        if len(chosen) == limit or (chosen and room < 0):
            break
        chosen.append(entry)
    return chosen
