"""Which file is a bus database, and which of its schemas is ours."""

from __future__ import annotations

from typing import Final

from agentbus.errors import StorageFailed, VersionMismatch
from agentbus.sqlite import Connection

APPLICATION_ID: Final = 0x61627573
"""`abus`, in the file's header."""

SCHEMA: Final = 3
"""`PRAGMA user_version` of a file that this program reads and writes: its number of migrations."""


def version(connection: Connection) -> int:
    """The schema of the file. Raises VersionMismatch where it is newer than ours."""
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > SCHEMA:
        raise VersionMismatch(
            f"{connection.path} was written by a newer agentbus (schema {found}, this one knows "
            f"{SCHEMA}); update agentbus, or choose another data_directory"
        )
    return found


def require_current(connection: Connection) -> None:
    """For readers. Raises VersionMismatch, or StorageFailed while the writer has not migrated."""
    found = version(connection)
    if found != SCHEMA:
        raise StorageFailed(f"{connection.path} has schema {found} so far, not {SCHEMA}")
