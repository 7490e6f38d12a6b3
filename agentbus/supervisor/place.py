"""The daemon's place, where adapters find it: a lock and a socket in the runtime directory.

Anybody may remove files: a cleaner, a person, a script that empties `~/.local/state`. A daemon that
cannot be reached would keep the data from every successor, so it looks once a second:

    lock         socket       then
    ours         ours         nothing
    ours         another's    bound anew
    gone         any          the lock is taken anew, and so on as above
    another's    gone         bound anew: whoever has the lock waits for our data, and follows us
    another's    another's    Displaced: a daemon with other data serves here now

The processes that run keep the lock that is gone, and that of the data.
"""

from __future__ import annotations

import contextlib
import os
import socket

from agentbus.errors import AgentbusError
from agentbus.runtime import logs
from agentbus.runtime.owners import Owner, read
from agentbus.runtime.paths import Paths, prepare_runtime
from agentbus.supervisor import listener, locks

_log = logs.get(__name__)

Mark = tuple[int, int]
"""Device and number of a file."""


class Displaced(Exception):
    """Another daemon serves at our socket; the argument says so to people."""


class Place:
    """Held from the start to the end of a daemon; `listening` is what its gateway accepts from."""

    def __init__(self, paths: Paths, lock: locks.Lock, data_lock: locks.Lock) -> None:
        """Listens, in place of whatever is there. Raises UnsafePermissions."""
        self._paths = paths
        self._lock: locks.Lock | None = lock
        self._data_lock = data_lock
        self.listening = listener.listen(paths.socket)
        self._mark = mark(paths.socket)
        self._refusing = False
        self._complained = False

    @property
    def locks(self) -> tuple[int, ...]:
        """Descriptors that every child keeps."""
        return tuple(lock.fd for lock in (self._lock, self._data_lock) if lock is not None)

    def refuse(self) -> None:
        """Nobody is listened to any more."""
        self._refusing = True
        self.listening.close()

    def leave(self) -> None:
        """Refuses, and removes the socket, unless it is another's."""
        self.refuse()
        if mark(self._paths.socket) == self._mark:
            listener.remove(self._paths.socket)

    def mend(self) -> socket.socket | None:
        """The new listening socket, where one had to be made. Raises Displaced."""
        if self._refusing:
            return None
        try:
            return self._mend()
        except AgentbusError as error:  # tried again at the next look
            if not self._complained:
                self._complained = True
                _log.error("place_lost", code=error.code, text=error.message)
            return None

    def _mend(self) -> socket.socket | None:
        if self._lock is None or mark(self._paths.lock) != mark(self._lock.fd):
            self._take_lock()
        found = mark(self._paths.socket)
        if found == self._mark:
            return None
        if found is not None and self._lock is None:
            owner = read(self._paths.lock)
            raise Displaced(
                f"process {owner.pid if owner else 'unknown'} serves at {self._paths.socket} now: "
                "the runtime directory was removed, and another daemon started there"
            )
        prepare_runtime(self._paths)
        fresh = listener.listen(self._paths.socket)
        self.listening.close()
        self.listening, self._mark = fresh, mark(self._paths.socket)
        self._complained = False
        _log.warn("socket_bound_anew", path=self._paths.socket)
        return fresh

    def _take_lock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        prepare_runtime(self._paths)
        self._lock = locks.take(self._paths.lock)
        if self._lock is not None:
            self._lock.write(Owner(os.getpid(), self._paths.socket, self._paths.runtime_directory))
            _log.warn("lock_taken_anew", path=self._paths.lock)


def mark(file: str | int) -> Mark | None:
    """Which file is at a path, or open; None for none."""
    with contextlib.suppress(OSError):
        found = os.stat(file)
        return found.st_dev, found.st_ino
    return None
