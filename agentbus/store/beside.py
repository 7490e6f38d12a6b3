"""A connection of a process that is not the writer."""

from __future__ import annotations

from agentbus import sqlite
from agentbus.store import schema


class Beside:
    """The database at a path, for one thread, opened at the first read.

    Raises StorageFailed (Busy among it), DatabaseDamaged, VersionMismatch; every call may be tried
    again.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: sqlite.Connection | None = None

    def close(self) -> None:
        """Gives the file up; the next read opens it anew."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> sqlite.Connection:
        if self._connection is None:
            connection = sqlite.open_reader(self._path)
            try:
                with sqlite.translated(self._path):
                    schema.require_current(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection
