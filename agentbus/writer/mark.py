"""The mark that a data directory keeps of the bus in it, beside the database.

A database that was deleted or emptied looks like one that never was, and a new bus in its place
would hide the loss: cursors, memories and messages gone without a word. The mark says that there
was one. It is written after the founding commit is durable, never before: a mark without a bus must
mean that a bus was lost. A reset removes it with the database.
"""

from __future__ import annotations

import os
import stat
from typing import Final

import msgspec

from agentbus.errors import DatabaseDamaged, StorageFailed
from agentbus.runtime import disk, refusals
from agentbus.runtime.paths import instance_mark

LARGEST: Final = 4096


class Founded(msgspec.Struct, frozen=True):
    """What stands in the file."""

    instance: str
    founded_at: str = ""
    """For people; of the first writing of the mark."""


class Mark:
    """Of the database at `database`."""

    def __init__(self, database: str) -> None:
        self.path = instance_mark(database)
        self._database = database

    def require_bus(self) -> None:
        """Raises DatabaseDamaged where there is a mark: the caller has found no bus."""
        if not os.path.lexists(self.path):
            return
        found = self.read()
        which = f" ({found.instance}, since {found.founded_at})" if found else ""
        raise DatabaseDamaged(
            f"{self._database} is empty or not there, but a bus{which} was in it: it was deleted "
            "or cut off, and nothing was made in its place; put the file or a backup back, or run "
            "`agentbus reset` to begin anew with nothing"
        )

    def require_file(self) -> None:
        """The same before SQLite opens it, which would throw away a WAL beside an empty file."""
        try:
            found = os.stat(self._database)
        except OSError:
            found = None
        if found is None or (stat.S_ISREG(found.st_mode) and found.st_size == 0):
            self.require_bus()

    def read(self) -> Founded | None:
        """What it says; None where there is none, or nothing that can be read."""
        try:
            with open(self.path, "rb") as file:
                return msgspec.json.decode(file.read(LARGEST), type=Founded)
        except (OSError, msgspec.MsgspecError):
            return None

    def keep(self, instance: str, founded_at: str) -> None:
        """Has it say that this bus is here, whatever it said. Raises StorageFailed."""
        found = self.read()
        if found is not None and found.instance == instance:
            return
        new = f"{self.path}.new"
        try:
            _write(new, msgspec.json.encode(Founded(instance, founded_at)) + b"\n")
            os.replace(new, self.path)
            disk.sync_directory(os.path.dirname(self.path))
        except OSError as error:
            raise refusals.of_storage(self.path, error) or StorageFailed(
                f"{self.path} cannot be written: {error.strerror}; make it and its directory "
                "writable, then try again"
            ) from error


def _write(path: str, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
