"""Where a harness' session hook leaves the conversation's id for the adapter beside it.

    <runtime directory>/callers/<pid of the harness>    the id, nothing else

Both are children of the same process, which is all they know of each other. The pid only leads to
the id; it is no identity. Files of processes that are gone are removed with the next one written.
"""

from __future__ import annotations

import contextlib
import os
from typing import Final

DIRECTORY: Final = "callers"
MAX_BYTES: Final = 512


def leave(runtime_directory: str, pid: int, session: str) -> None:
    """Says which conversation the harness with that pid is in now. Raises OSError."""
    directory = os.path.join(runtime_directory, DIRECTORY)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    _tidy(directory)
    path = os.path.join(directory, str(pid))
    temporary = f"{path}.{os.getpid()}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, session.encode()[:MAX_BYTES])
    finally:
        os.close(fd)
    os.replace(temporary, path)


def find(runtime_directory: str, pid: int) -> str | None:
    """The conversation that the harness with that pid is in, where its hook has said so."""
    try:
        fd = os.open(os.path.join(runtime_directory, DIRECTORY, str(pid)), os.O_RDONLY)
    except OSError:
        return None
    try:
        said = os.read(fd, MAX_BYTES).decode(errors="replace").strip()
    finally:
        os.close(fd)
    return said if said and said.isprintable() else None


def _tidy(directory: str) -> None:
    for name in os.listdir(directory):
        pid = name.partition(".")[0]
        if pid.isdecimal() and not _lives(int(pid)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(directory, name))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
