"""Writing the bus database: named statements, and the writer's view of them.

    bus      the row about the bus, channels
    people   agents and sessions
    cursors  subscriptions
    rows     messages and receipts
    gaps     what retention took from whom
    counts   what has not been delivered

Everything is to be called within `WriteStore.transaction()` or `.snapshot()`. Only the writer
imports this.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Literal

from agentbus.sqlite import Connection
from agentbus.store.write.bus import Bus
from agentbus.store.write.counts import Counts
from agentbus.store.write.cursors import Cursors
from agentbus.store.write.evict import Evictions
from agentbus.store.write.gaps import Gaps
from agentbus.store.write.people import People
from agentbus.store.write.rows import Rows


class WriteStore:
    """The writer's connection. Raises what `sqlite.Connection.transaction` raises."""

    def __init__(self, connection: Connection, synchronous: str) -> None:
        self._connection = connection
        self.synchronous = synchronous
        self.path = connection.path
        self.bus = Bus(connection)
        self.people = People(connection)
        self.cursors = Cursors(connection)
        self.rows = Rows(connection)
        self.gaps = Gaps(connection)
        self.evictions = Evictions(connection)
        self.counts = Counts(connection)

    def transaction(self) -> AbstractContextManager[None]:
        """All of it or nothing; Busy at once where another program writes."""
        return self._connection.transaction()

    def snapshot(self) -> AbstractContextManager[None]:
        """Reads of one state."""
        return self._connection.snapshot()

    def checkpoint(self, mode: Literal["passive", "truncate"]) -> bool:
        """See `sqlite.Connection.checkpoint`."""
        return self._connection.checkpoint(mode)

    def in_place(self) -> bool:
        """See `sqlite.Connection.in_place`."""
        return self._connection.in_place()

    def file_bytes(self) -> int:
        """Size of the database file."""
        return self._connection.file_bytes()

    def wal_bytes(self) -> int:
        """Size of the WAL file."""
        return self._connection.wal_bytes()

    def close(self) -> None:
        """Gives the file up."""
        self._connection.close()
