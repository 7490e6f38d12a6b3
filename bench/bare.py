"""What the bus is compared with: a loop that commits the same rows and receipts, and nothing else.

One connection in the writer's own configuration, a file of the project's own schema, envelopes and
fingerprints made before the clock starts. No sockets, no checks, no projection, no other process.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from agentbus.model.message import Message, Payload, fingerprint
from agentbus.sqlite import Connection, open_writer
from agentbus.store.migrations import apply_pending
from agentbus.store.schema import APPLICATION_ID
from bench.load import CHANNEL, text

INSERT_MESSAGE: Final = """
    INSERT INTO messages (id, channel_id, seq, session_id, commit_id, sent_at, message_id, envelope)
    VALUES (?, 1, ?, ?, ?, ?, ?, ?)
"""
INSERT_RECEIPT: Final = """
    INSERT INTO receipts (id, operation_id, session_id, fingerprint, channel_id, seq, accepted_at)
    VALUES (?, ?, ?, ?, 1, ?, ?)
"""
Synchronous = Literal["full", "normal"]

SENT_AT: Final = 1_790_000_000_000


class Bare:
    """A database of its own, filled batch by batch."""

    def __init__(
        self, base: str, content_bytes: int, sessions: int, synchronous: Synchronous = "full"
    ) -> None:
        self.directory = tempfile.mkdtemp(prefix="ab-bare-", dir=base)
        self._connection = database(os.path.join(self.directory, "bus.sqlite3"), synchronous)
        self._payload = Payload(text(content_bytes))
        self._fingerprint = fingerprint(CHANNEL, self._payload)
        self._sessions = sessions
        self._last = 0
        self._commits = 0

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def run(self, batch: int, seconds: float) -> list[float]:
        """Seconds that each transaction took, until they sum up to `seconds`."""
        took: list[float] = []
        total = 0.0
        while total < seconds:
            took.append(self._commit(batch, time.perf_counter))
            total += took[-1]
        return took

    def cost(self, batch: int) -> float:
        """Seconds of processor time that one transaction takes."""
        return self._commit(batch, time.process_time)

    def rate(self, batch: int, seconds: float) -> float:
        """Messages a second, in transactions of so many."""
        took = self.run(batch, seconds)
        return len(took) * batch / sum(took)

    def prepare(self, batch: int) -> Callable[[], None]:
        """Makes so many messages; what is returned commits them."""
        self._commits += 1
        messages, receipts = [], []
        for number in range(self._last + 1, self._last + batch + 1):
            message, receipt = self._rows(number)
            messages.append(message)
            receipts.append(receipt)
        self._last += batch
        connection = self._connection

        def commit() -> None:
            with connection.transaction():
                connection.executemany(INSERT_MESSAGE, messages)
                connection.executemany(INSERT_RECEIPT, receipts)

        return commit

    def _commit(self, batch: int, clock: Callable[[], float]) -> float:
        commit = self.prepare(batch)
        began = clock()
        commit()
        return clock() - began

    def _rows(self, number: int) -> tuple[tuple[object, ...], tuple[object, ...]]:
        turn, sender = divmod(number, self._sessions)
        name = f"bare-s{sender}"
        message_id = f"bare-{sender}-{turn}"
        envelope = msgspec.json.encode(
            Message(
                message_id=message_id,
                seq=number,
                channel=CHANNEL,
                sender=name,
                agent=name,
                application="bench",
                session=name,
                sent_at="2026-11-30T16:40:27.123Z",
                type=self._payload.type,
                content=self._payload.content,
                thread=message_id,
            )
        )
        sent_at = SENT_AT + number
        return (
            (number, number, sender, self._commits, sent_at, message_id, envelope),
            (number, message_id, sender, self._fingerprint, number, sent_at),
        )


def database(path: str, synchronous: Synchronous = "full") -> Connection:
    """An empty one of the bus' own schema, opened as the writer does."""
    connection = open_writer(path, synchronous=synchronous, application_id=APPLICATION_ID)
    with connection.transaction():
        apply_pending(connection)
    return connection
