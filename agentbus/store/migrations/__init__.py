"""Steps of the schema in their order; a step that was released is never changed.

Each module has `apply(db)`, and its name is what the database remembers of it. Importing this is
slow (sqlite-utils): only a file that is not at `store.schema.SCHEMA` needs it.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

from agentbus.sqlite import Connection
from agentbus.store.migrations import m0001_message_path, m0002_live_bytes, m0003_cleaning

STEPS: Final[tuple[ModuleType, ...]] = (m0001_message_path, m0002_live_bytes, m0003_cleaning)


def build() -> Migrations:
    """All steps, for sqlite-utils."""
    migrations = Migrations("agentbus")
    for step in STEPS:
        migrations(name=step.__name__.rpartition(".")[2])(step.apply)
    return migrations


def apply_pending(connection: Connection) -> None:
    """Takes the steps that the file has not seen. Call it within a transaction."""
    build().apply(Database(connection, recursive_triggers=False, execute_plugins=False))
