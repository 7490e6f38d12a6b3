"""Opening the bus database for writing, making or migrating it first where need be."""

from __future__ import annotations

from typing import Final

from agentbus import sqlite
from agentbus.config import Settings
from agentbus.errors import StorageFailed
from agentbus.model.ports import Instant, Tokens
from agentbus.runtime.faults import Fault, Point, no_fault
from agentbus.sqlite import Busy
from agentbus.store import schema
from agentbus.store.write import WriteStore
from agentbus.writer.events import Note

AGAIN_SECONDS: Final = 60.0
"""Between two lines that say the database still cannot be opened."""

FAILING_SECONDS: Final = 30.0
"""How long a disk that fails is waited for, as the gateway's callers are: a bus that serves goes on
afterwards, and whoever starts one hears the reason before losing patience."""


class Wait:
    """For a database that cannot be opened yet: locked, or on a disk that fails. Times are
    monotonic seconds."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._said: tuple[str, float] | None = None

    def goes_on(self, error: StorageFailed, now: float) -> Note | None:
        """It was tried in vain. Raises the error where waiting is of no use any more."""
        self._since = now if self._since is None else self._since
        locked, waited = isinstance(error, Busy), now - self._since
        if not locked and waited >= FAILING_SECONDS:
            raise error
        action = "database_locked" if locked else "database_unavailable"
        said, since = self._said or ("", 0.0)
        if said == action and now < since + AGAIN_SECONDS:
            return None
        self._said = (action, now)
        return Note("warn", action, {"text": error.message, "seconds": round(waited)})

    def ended(self, now: float) -> Note | None:
        """It is open."""
        if self._since is None:
            return None
        return Note("info", "database_free", {"seconds": round(now - self._since, 1)})


def open_store(
    path: str, settings: Settings, tokens: Tokens, now: Instant, fault: Fault = no_fault
) -> WriteStore:
    """The store, at our schema and with a bus in it.

    Raises Busy (try again), DatabaseDamaged, VersionMismatch, StorageFailed, UnsafePermissions; the
    file is then as it was.
    """
    connection = sqlite.open_writer(
        path, synchronous=settings.sqlite_synchronous, application_id=schema.APPLICATION_ID
    )
    try:
        store = WriteStore(connection, settings.sqlite_synchronous)
        _prepare(connection, store, tokens, now, fault)
    except BaseException:
        connection.close()
        raise
    return store


def _prepare(
    connection: sqlite.Connection,
    store: WriteStore,
    tokens: Tokens,
    now: Instant,
    fault: Fault,
) -> None:
    with sqlite.translated(connection.path):
        current = schema.version(connection) == schema.SCHEMA
    if current:
        return
    # Only here: importing sqlite-utils takes longer than all the rest of a writer's start.
    from agentbus.store import migrations  # noqa: PLC0415

    with connection.transaction():
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        migrations.apply_pending(connection)
        store.bus.found(tokens.token(), int(now.wall * 1000))
        fault(Point.MIGRATING)
    fault(Point.MIGRATED)
