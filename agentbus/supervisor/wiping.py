"""Removing a bus' data: for a reset, by whoever holds both locks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Final

from agentbus.errors import Unavailable
from agentbus.runtime.owners import Owner
from agentbus.runtime.paths import Paths
from agentbus.supervisor import locks

COMPANIONS: Final = ("", "-wal", "-shm", "-journal")
"""What SQLite keeps beside a database, by its ending."""


def wipe(paths: Paths) -> str:
    """Removes database, index and snapshot; configuration, locks and logs stay. Returns why
    something could not be removed, an empty string otherwise.

    A mark is there while this goes on: a reset that is interrupted is finished at the next start,
    so that no file meets another that it does not belong to.
    """
    try:
        with open(paths.reset_mark, "xb"):
            pass
    except FileExistsError:
        pass
    except OSError as error:
        return f"{paths.reset_mark}: {error.strerror}"
    reasons = "; ".join(filter(None, map(_remove, _files(paths))))
    return reasons or _remove(paths.reset_mark)


def wipe_offline(paths: Paths) -> str:
    """The same where no daemon runs. Raises Unavailable or ConfigMismatch where one does."""
    with contextlib.ExitStack() as held:
        for take in (locks.take_daemon, locks.take_data):
            lock = take(paths)
            if isinstance(lock, Owner):
                raise Unavailable(f"a daemon (process {lock.pid}) has just started; try again")
            held.callback(lock.close)
        return wipe(paths)


def finish(paths: Paths) -> str:
    """Removes what an interrupted reset has left; like `wipe`."""
    return wipe(paths) if os.path.exists(paths.reset_mark) else ""


def _files(paths: Paths) -> Iterator[str]:
    with contextlib.suppress(FileNotFoundError):
        for name in sorted(os.listdir(paths.snapshot_directory)):
            yield os.path.join(paths.snapshot_directory, name)
    for file in (paths.index, paths.database):
        for end in COMPANIONS:
            yield file + end
    yield paths.instance_mark


def _remove(path: str) -> str:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""
