"""Opening the bus database for writing, making or migrating it first where need be."""

from __future__ import annotations

from agentbus import sqlite
from agentbus.config import Settings
from agentbus.model.ports import Instant, Tokens
from agentbus.runtime.faults import Fault, Point, no_fault
from agentbus.store import schema
from agentbus.store.write import WriteStore


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
