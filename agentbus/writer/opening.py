"""Opening the bus database for writing, making or migrating it first where need be."""

from __future__ import annotations

from agentbus import sqlite
from agentbus.config import Settings
from agentbus.model.message import rfc3339
from agentbus.model.ports import Instant, Tokens
from agentbus.runtime.faults import Fault, Point, no_fault
from agentbus.store import schema
from agentbus.store.write import WriteStore
from agentbus.writer.mark import Mark


def open_store(
    path: str, settings: Settings, tokens: Tokens, now: Instant, fault: Fault = no_fault
) -> WriteStore:
    """The store, at our schema and with a bus in it.

    Raises Busy (try again), DatabaseDamaged, VersionMismatch, StorageFailed, UnsafePermissions; the
    file is then as it was. A database that is empty where a bus was is damaged.
    """
    mark = Mark(path)
    mark.require_file()
    connection = sqlite.open_writer(
        path, synchronous=settings.sqlite_synchronous, application_id=schema.APPLICATION_ID
    )
    try:
        store = WriteStore(connection, settings.sqlite_synchronous)
        _prepare(connection, store, mark, tokens, now, fault)
        with store.snapshot():
            instance = store.bus.meta().instance
        mark.keep(instance, rfc3339(int(now.wall * 1000)))
    except BaseException:
        connection.close()
        raise
    return store


def _prepare(
    connection: sqlite.Connection,
    store: WriteStore,
    mark: Mark,
    tokens: Tokens,
    now: Instant,
    fault: Fault,
) -> None:
    with sqlite.translated(connection.path):
        version = schema.version(connection)
    if version == schema.SCHEMA:
        return
    if version == 0:
        mark.require_bus()
    # Only here: importing sqlite-utils takes longer than all the rest of a writer's start.
    from agentbus.store import migrations  # noqa: PLC0415

    with connection.transaction():
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        migrations.apply_pending(connection)
        store.bus.found(tokens.token(), int(now.wall * 1000))
        fault(Point.MIGRATING)
    # What the mark will say must be durable before it, whatever `sqlite_synchronous` is.
    connection.checkpoint("passive")
    fault(Point.MIGRATED)
