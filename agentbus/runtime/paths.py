"""Where everything of one bus lives, and that nobody else can get at it.

    runtime directory   ~/.local/state/agentbus, or AGENTBUS_RUNTIME_DIR
        bus.sock        what adapters connect to
        daemon.lock     flock'ed by the daemon and its children; says who and where
        start.lock      flock'ed by a daemon that starts; says how the last start went
        redis/          the dedicated server's lock and sockets
    data directory      setting `data_directory`
        data.lock       flock'ed likewise: two runtime directories, one database is refused
        bus.sqlite3
        bus.sqlite3.instance    says that there is a bus in it, and which
        search.sqlite3      the text index, made anew from the database where it is not there
        redis/          the dedicated server's snapshot
        reset.pending   while a reset removes these files
        logs/

The runtime directory does not follow XDG variables or TMPDIR: a harness may strip or change them
for one adapter and not for another, and both must meet. Socket addresses have room for 103 bytes
and a NUL (macOS; Linux has 4 more), so a long path moves its socket to `/tmp/agentbus-<uid>/`.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from typing import Final

import msgspec

from agentbus.config import Settings
from agentbus.digest import digest
from agentbus.errors import StorageFailed, UnsafePermissions
from agentbus.runtime import disk, refusals

RUNTIME_VARIABLE: Final = "AGENTBUS_RUNTIME_DIR"
SOCKET_PATH_LIMIT: Final = 103
REDIS_SOCKET_NAME: Final = 24
"""Bytes that the longest name of a socket in the Redis directory takes, with its slash."""

_SHARED: Final = "/tmp"  # noqa: S108 - what is made there is checked like any other directory


class Paths(msgspec.Struct, frozen=True):
    """Absolute paths; nothing in them need exist before `prepare`."""

    runtime_directory: str
    socket: str
    lock: str
    start_lock: str
    redis_directory: str
    redis_lock: str
    data_directory: str
    data_lock: str
    database: str
    index: str
    snapshot_directory: str
    instance_mark: str
    reset_mark: str
    log_directory: str

    def log(self, name: str) -> str:
        """The present log file of a process."""
        return _log(self.log_directory, name)


def log_file(settings: Settings, name: str) -> str:
    """The present log file of a process, for whoever knows the settings alone."""
    return _log(_log_directory(settings), name)


def _log_directory(settings: Settings) -> str:
    return os.path.join(settings.data_directory, "logs")


def _log(directory: str, name: str) -> str:
    return os.path.join(directory, f"{name}.log")


def locate(settings: Settings, environ: Mapping[str, str] = os.environ) -> Paths:
    """The paths of the bus that these settings and this environment name. Touches nothing."""
    runtime = _runtime_directory(environ)
    data = settings.data_directory
    database = os.path.join(data, "bus.sqlite3")
    redis = _near(runtime, "redis", reserve=REDIS_SOCKET_NAME)
    return Paths(
        runtime_directory=runtime,
        socket=_near(runtime, "bus.sock"),
        lock=os.path.join(runtime, "daemon.lock"),
        start_lock=os.path.join(runtime, "start.lock"),
        redis_directory=redis,
        redis_lock=os.path.join(redis, "redis.lock"),
        data_directory=data,
        data_lock=os.path.join(data, "data.lock"),
        database=database,
        index=os.path.join(data, "search.sqlite3"),
        snapshot_directory=os.path.join(data, "redis"),
        instance_mark=instance_mark(database),
        reset_mark=os.path.join(data, "reset.pending"),
        log_directory=_log_directory(settings),
    )


def instance_mark(database: str) -> str:
    """The mark that belongs to a database."""
    return f"{database}.instance"


def _runtime_directory(environ: Mapping[str, str]) -> str:
    home = environ.get("HOME") or os.path.expanduser("~")
    given = environ.get(RUNTIME_VARIABLE)
    if not given:
        return os.path.join(home, ".local", "state", "agentbus")
    if given == "~" or given.startswith("~/"):
        given = home + given[1:]
    return os.path.abspath(given)


def _near(runtime: str, name: str, *, reserve: int = 0) -> str:
    """`name` in the runtime directory, or in a short one where a socket address would not fit."""
    path = os.path.join(runtime, name)
    if len(os.fsencode(path)) + reserve <= SOCKET_PATH_LIMIT:
        return path
    mark = digest(os.fsencode(runtime), 8).hex()
    suffix = name.rpartition(".")[2]
    return os.path.join(_SHARED, f"agentbus-{os.getuid()}", f"{mark}.{suffix}")


def prepare(paths: Paths) -> None:
    """Makes the directories, 0700.

    Raises UnsafePermissions where one is not the user's alone, StorageFailed where nothing can be
    written to one.
    """
    prepare_runtime(paths)
    _prepare(paths.data_directory, paths.snapshot_directory, paths.log_directory)


def prepare_runtime(paths: Paths) -> None:
    """The same for those that hold nothing of value."""
    _prepare(
        paths.runtime_directory,
        os.path.dirname(paths.socket),
        os.path.dirname(paths.redis_directory),
        paths.redis_directory,
    )


def _prepare(*wanted: str) -> None:
    for directory in dict.fromkeys(wanted):
        _make(directory)
        check_private(directory)
        _check_writable(directory)


def check_usable(directory: str) -> None:
    """Raises what `prepare` would of this one, as far as that can be seen; makes nothing."""
    if os.path.lexists(directory):
        check_private(directory)
        _check_writable(directory)
        return
    parent = os.path.dirname(directory)
    while not os.path.lexists(parent):
        parent = os.path.dirname(parent)
    if not os.path.isdir(parent):
        raise _unmakable(directory, "a part of that path is no directory")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise _unmakable(directory, f"{parent} cannot be written")


def _unmakable(directory: str, reason: str) -> UnsafePermissions:
    return UnsafePermissions(
        f"{directory} cannot be made ({reason}); make it yourself, with mode 700, or choose "
        "another place"
    )


def _make(directory: str) -> None:
    try:
        os.makedirs(os.path.dirname(directory), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(directory, 0o700)
            disk.sync_directory(os.path.dirname(directory))
    except OSError as error:
        refusal = refusals.of_storage(directory, error)
        if refusal is not None:
            raise refusal from error
        no_directory = isinstance(error, FileExistsError | NotADirectoryError)
        reason = "a part of that path is no directory" if no_directory else str(error.strerror)
        raise _unmakable(directory, reason) from error


def _check_writable(directory: str) -> None:
    """Asked of the kernel: a read-only file system refuses whoever has all rights, too."""
    if os.access(directory, os.W_OK | os.X_OK):
        return
    if os.stat(directory).st_mode & stat.S_IRWXU != stat.S_IRWXU:
        raise StorageFailed(f"{directory} cannot be written; run: chmod 700 {directory}")
    raise StorageFailed(
        f"{directory} cannot be written: the file system is read-only; make it writable, or choose "
        "another place"
    )


def check_private(directory: str) -> None:
    """Raises UnsafePermissions unless it is a directory, no link, the user's, and 0700."""
    found = os.lstat(directory)
    if stat.S_ISLNK(found.st_mode):
        raise UnsafePermissions(
            f"{directory} is a symbolic link; name the directory it points to, or remove it"
        )
    if not stat.S_ISDIR(found.st_mode):
        raise UnsafePermissions(f"{directory} is not a directory; move it out of the way")
    if found.st_uid != os.getuid():
        raise UnsafePermissions(
            f"{directory} belongs to user id {found.st_uid}, not to you ({os.getuid()}); "
            "choose another place"
        )
    if found.st_mode & 0o077:
        raise UnsafePermissions(f"{directory} is open to other users; run: chmod 700 {directory}")
