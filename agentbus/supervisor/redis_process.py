"""The dedicated Redis: its lock, its socket, its command line.

It listens on one Unix socket in the runtime directory, whose name no other incarnation has, and
writes nothing but the snapshots it is asked for. It inherits a lock of its own: while that is held,
a server of ours, or the process that writes its snapshot, is alive. A server left by a killed
supervisor is known by the lock, the pid in it and its command line, and is ended; no other Redis
is ever touched.
"""

from __future__ import annotations

import contextlib
import glob
import os
import signal
import socket
from typing import Final, NoReturn

from agentbus.errors import StorageFailed
from agentbus.model.ports import Tokens
from agentbus.runtime import logs, platform
from agentbus.runtime.owners import Owner, read
from agentbus.runtime.paths import Paths, prepare
from agentbus.supervisor import locks
from agentbus.supervisor.place import Mark, mark
from agentbus.supervisor.redis_discovery import Server

SNAPSHOT: Final = "dump.rdb"
NOT_STARTED: Final = 127
CONNECT_SECONDS: Final = 0.05

_log = logs.get(__name__)


class Held(Exception):
    """A server of ours from before is still ending; `pid` is in the lock file."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid)
        self.pid = pid


class RedisProcess:
    """Starts servers of one executable, one after the other."""

    def __init__(self, server: Server, paths: Paths, tokens: Tokens) -> None:
        self._server = server
        self._paths = paths
        self._tokens = tokens

    def start(self, *, keep_snapshot: bool) -> tuple[int, str]:
        """The pid and the socket of a new server. Raises Held, OSError, or the AgentbusError that
        the directory or the lock met."""
        prepare(self._paths)  # somebody may have removed a directory meanwhile
        lock = locks.take(self._paths.redis_lock)
        if lock is None:
            raise Held(self._end_orphan())
        try:
            self._clean(keep_snapshot=keep_snapshot)
            logs.rotate(self._paths.log("redis"))
            name = f"redis-{self._tokens.token()[:8]}.sock"
            path = os.path.join(self._paths.redis_directory, name)
            return self._spawn(lock, path), path
        finally:
            lock.close()  # the server has its own copy, and nobody else

    def listening(self, path: str) -> Mark | None:
        """Which file a server takes connections at, that path being the one of a server that was
        started; None: none does yet. It is looked at after the connection, since before it there
        may have been none."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(CONNECT_SECONDS)
            try:
                sock.connect(path)
            except OSError:
                return None
        return mark(path)

    def end_group(self, pid: int) -> None:
        """Ends what a server that was just reaped has left: the process writing its snapshot,
        which would hold the lock until it is done."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)

    def arguments(self, path: str) -> list[str]:
        """The command line of a server that listens on `path`."""
        options = {
            "port": "0",
            "unixsocket": path,
            "unixsocketperm": "700",
            "save": "",
            "appendonly": "no",
            "maxmemory-policy": "noeviction",
            "dir": self._paths.snapshot_directory,
            "dbfilename": SNAPSHOT,
            "stop-writes-on-bgsave-error": "no",
            "stream-node-max-bytes": "16384",  # a dozen messages in one: a snapshot loads sooner
            "daemonize": "no",
            "logfile": self._paths.log("redis"),
        }
        flat = [part for name, value in options.items() for part in (f"--{name}", value)]
        return [self._server.executable, *flat]

    def _end_orphan(self) -> int:
        """Kills the server that the lock file names, if it is one of ours; its pid, else 0."""
        owner = read(self._paths.redis_lock)
        if owner is None:
            return 0
        if owner.socket in platform.command_line(owner.pid):
            _log.warn("redis_orphan_killed", child=owner.pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(owner.pid, signal.SIGKILL)
        return owner.pid

    def _clean(self, *, keep_snapshot: bool) -> None:
        """Removes what servers before left behind; under the lock."""
        directory = glob.escape(self._paths.redis_directory)
        snapshots = self._paths.snapshot_directory
        leftovers = glob.glob(os.path.join(directory, "redis-*.sock"))
        leftovers += glob.glob(os.path.join(glob.escape(snapshots), "temp-*.rdb"))
        if not keep_snapshot:
            _log.warn("redis_snapshot_dropped")
            leftovers.append(os.path.join(snapshots, SNAPSHOT))
        for leftover in leftovers:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(leftover)

    def _spawn(self, lock: locks.Lock, path: str) -> int:
        parent = os.getpid()
        arguments = self.arguments(path)
        blocked = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        try:
            pid = os.fork()
            if pid == 0:
                self._become(lock, path, arguments, parent, blocked)
            return pid
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def _become(
        self, lock: locks.Lock, path: str, arguments: list[str], parent: int, mask: set[int]
    ) -> NoReturn:
        """Everything else that is open is closed by exec."""
        try:
            signal.set_wakeup_fd(-1)
            for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                with contextlib.suppress(OSError, ValueError):
                    signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.setsid()  # a terminal's Ctrl-C is not for it
            platform.die_with_parent(parent)
            # The lock itself is what counts, also on a full disk.
            with contextlib.suppress(OSError, StorageFailed):
                lock.write(Owner(os.getpid(), path))
            os.set_inheritable(lock.fd, True)
            log = os.open(self._paths.log("redis"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.execv(arguments[0], arguments)  # noqa: S606 - no shell is wanted
        except OSError as error:
            os.write(2, f"{arguments[0]} cannot be run: {error.strerror}\n".encode())
        finally:
            os._exit(NOT_STARTED)
