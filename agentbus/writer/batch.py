"""Which operations share a transaction.

Operations are committed in the order in which they came, as many at once as are there, up to
`MAX_OPERATIONS` or `MAX_BYTES` of envelopes and answers: a commit has to fit one frame and one
`MULTI`. A gateway's greeting stands alone.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import Final

import msgspec

from agentbus.wire.links import GatewayHello, GatewayToWriter

MAX_OPERATIONS: Final = 256
MAX_BYTES: Final = 4 * 1024 * 1024


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An operation, and on which gateway link in a row it came: others get no answer."""

    link: int
    operation: GatewayToWriter


class Queue:
    """Operations that are not committed yet."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, entry: Entry) -> None:
        """Behind all others."""
        self._entries.append(entry)

    def cut(self, most: int = MAX_OPERATIONS) -> list[Entry]:
        """The next batch by number; it stays queued until `drop`."""
        head: list[Entry] = []
        for entry in itertools.islice(self._entries, most):
            if isinstance(entry.operation, GatewayHello):
                return head or [entry]
            head.append(entry)
        return head

    def drop(self, count: int) -> None:
        """So many of the first are done."""
        for _ in range(count):
            self._entries.popleft()


def is_full(size: int) -> bool:
    """Whether a batch of so many bytes takes no further operation."""
    return size >= MAX_BYTES
