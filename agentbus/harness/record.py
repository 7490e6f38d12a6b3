"""What `init` has changed, and what was there before: so that it can be put back.

    ~/.config/agentbus/init/
        record.json     a line of facts for each changed file
        copies/N-NAME   a file as it was before the first change
        lock            flock'ed while files are changed

Copies may hold secrets of other programs: everything is the user's alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

import msgspec

from agentbus.digest import digest
from agentbus.errors import ConfigInvalid
from agentbus.harness import files


class Changed(msgspec.Struct, frozen=True):
    """A file that was changed: `copy` has what was there, None where nothing was; `written` is the
    digest of what was written; `made` are directories that were not there."""

    owner: str
    written: str
    copy: str | None = None
    made: list[str] = []


class _Document(msgspec.Struct):
    version: int = 1
    files: dict[str, Changed] = {}


class Record:
    """The record in a directory, as it is now."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._path = os.path.join(directory, "record.json")
        self._copies = os.path.join(directory, "copies")
        content = files.read(self._path)
        try:
            known = _Document() if content is None else msgspec.json.decode(content, type=_Document)
        except msgspec.MsgspecError as error:
            raise ConfigInvalid(
                f"{self._path} is damaged ({error}); move it away, and compare {self._copies}"
            ) from error
        self._document = known

    @property
    def files(self) -> dict[str, Changed]:
        """What was changed, by path."""
        return self._document.files

    def original(self, path: str) -> bytes | None:
        """What a file held before. Raises ConfigInvalid where the copy is gone."""
        changed = self.files[path]
        if changed.copy is None:
            return None
        content = files.read(self.copy_of(changed.copy))
        if content is None:
            raise ConfigInvalid(f"{self.copy_of(changed.copy)} is gone, the copy of {path}")
        return content

    def copy_of(self, name: str) -> str:
        """Where a copy is."""
        return os.path.join(self._copies, name)

    def keep(self, path: str, original: bytes | None) -> str | None:
        """Makes a copy; its name."""
        if original is None:
            return None
        os.makedirs(self._copies, mode=0o700, exist_ok=True)
        number = 1 + max((_number(name) for name in os.listdir(self._copies)), default=0)
        name = f"{number}-{os.path.basename(path).lstrip('.')}"
        files.replace(self.copy_of(name), None, original)
        return name

    def note(self, path: str, changed: Changed) -> None:
        """Before the file is changed."""
        self._save({**self.files, path: changed})

    def forget(self, path: str, *, drop_copy: bool) -> None:
        """After it was put back."""
        changed = self.files[path]
        self._save({key: value for key, value in self.files.items() if key != path})
        if drop_copy and changed.copy is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.copy_of(changed.copy))

    def _save(self, known: dict[str, Changed]) -> None:
        self._document = _Document(files=known)
        content = msgspec.json.format(msgspec.json.encode(self._document)) + b"\n"
        files.replace(self._path, files.read(self._path), content)

    def tidy(self) -> None:
        """Nothing stays behind where nothing is recorded; copies that were kept do."""
        if self.files:
            return
        for name in ("record.json", "lock"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.directory, name))
        for directory in (self._copies, self.directory, os.path.dirname(self.directory)):
            with contextlib.suppress(OSError):
                os.rmdir(directory)


def mark(content: bytes | None) -> str:
    """The digest that tells whether a file is as it was written."""
    return "" if content is None else digest(content, 16).hex()


def _number(name: str) -> int:
    head = name.partition("-")[0]
    return int(head) if head.isdecimal() else 0


@contextlib.contextmanager
def locked(directory: str) -> Iterator[Record]:
    """The record, for one process at a time. Raises ConfigInvalid."""
    try:
        fd = _lock(directory)
    except OSError as error:
        raise ConfigInvalid(f"{directory} cannot be written: {error.strerror}") from error
    try:
        yield Record(directory)
    finally:
        os.close(fd)


def _lock(directory: str) -> int:
    """Until the file that is locked is the one that is there: `tidy` removes it."""
    path = os.path.join(directory, "lock")
    while True:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(fd), os.stat(path)):
                return fd
        os.close(fd)
