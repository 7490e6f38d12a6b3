"""What there is to judge: plain values, looked at once."""

from __future__ import annotations

from typing import Final

import msgspec

from agentbus.cli.snapshot import Snapshot
from agentbus.errors import AgentbusError

MAGIC: Final = b"SQLite format 3\0"
WAL: Final = 2
"""What the header of a database says of its journal, where that is a write-ahead log."""


class Program(msgspec.Struct, frozen=True):
    """This installation. `changed_at` is when its newest file was written, in seconds since 1970;
    `open_files` the most descriptors that a process may be allowed."""

    version: str
    protocol: int
    python: str
    sqlite: str
    has_fts5: bool
    changed_at: float
    open_files: int


class Settings(msgspec.Struct, frozen=True):
    """The configuration file; `error` is why nothing of it holds. `hook` is the program of the
    inspection hook, `hook_found` where that is."""

    path: str
    exists: bool = False
    given: int = 0
    error: AgentbusError | None = None
    hook: str | None = None
    hook_found: str | None = None


class Directory(msgspec.Struct, frozen=True):
    """One that the bus needs; `error` is why it cannot be used, or be made where it is not."""

    role: str
    path: str
    exists: bool
    error: AgentbusError | None = None


class File(msgspec.Struct, frozen=True):
    """One that the bus wrote, with its owner and its mode."""

    path: str
    uid: int
    mode: int


class Disk(msgspec.Struct, frozen=True):
    """The file system of a directory; bytes, and names that are free (None: without a bound)."""

    path: str
    free: int
    total: int
    free_names: int | None = None
    kind: str | None = None


class Database(msgspec.Struct, frozen=True):
    """The database file, by its first 100 bytes: to open it would be to change what is beside it.

    `lost` says that there was one which is not there now. What this program writes there is
    `our_application` and `our_schema`.
    """

    path: str
    our_application: int
    our_schema: int
    size: int = 0
    wal_bytes: int = 0
    header: bytes = b""
    written_at: float = 0.0
    lost: AgentbusError | None = None
    unreadable: str | None = None

    @property
    def is_sqlite(self) -> bool:
        """By its first bytes; one that is empty yet can become one."""
        return not self.size or self.header.startswith(MAGIC)

    @property
    def declared(self) -> int:
        """Bytes that the file has by its own account."""
        page = int.from_bytes(self.header[16:18], "big")
        return (65536 if page == 1 else page) * self._number(28)

    @property
    def has_wal(self) -> bool:
        """Whether its journal is a write-ahead log."""
        return self.header[18:20] == bytes((WAL, WAL))

    @property
    def schema(self) -> int:
        """`PRAGMA user_version`, as far as it is in the file itself."""
        return self._number(60)

    @property
    def application(self) -> int:
        """`PRAGMA application_id`, likewise."""
        return self._number(68)

    def _number(self, offset: int) -> int:
        return int.from_bytes(self.header[offset : offset + 4], "big")


class Server(msgspec.Struct, frozen=True):
    """The Redis that the next start would take."""

    executable: str
    name: str


class Bus(msgspec.Struct, frozen=True):
    """The daemon, as far as it says something.

    `pid` is the daemon's by its lock (0: not known), `other` the runtime directory whose daemon has
    the data, `silence` why there is no `snapshot`, `refusal` why it would not serve an adapter of
    this installation, `age` its seconds by the kernel's account, `failure` why
    the last one failed.
    """

    socket: str
    moved: bool = False
    pid: int | None = None
    other: str | None = None
    other_pid: int = 0
    snapshot: Snapshot | None = None
    silence: AgentbusError | None = None
    refusal: AgentbusError | None = None
    age: float | None = None
    failure: str | None = None


class Harness(msgspec.Struct, frozen=True):
    """A program that agents run in, and how it starts the bus.

    `command` is the program of its entry, `found` where that is; `elsewhere` names the variables
    and options by which it would meet another bus than this command does.
    """

    name: str
    title: str
    file: str
    connected: bool = False
    disabled: bool = False
    command: str = ""
    found: str | None = None
    same: bool = True
    elsewhere: list[str] = []
    lacking: list[str] = []
    passed_over: list[str] = []
    error: AgentbusError | None = None


class Facts(msgspec.Struct, frozen=True):
    """All of it. `now` is in seconds since 1970; what depends on settings that cannot be read is
    None or empty."""

    now: float
    uid: int
    this: str
    program: Program
    settings: Settings
    directories: list[Directory]
    files: list[File]
    disks: list[Disk]
    server: Server | AgentbusError | None
    database: Database | None
    bus: Bus
    harnesses: list[Harness]
    project: AgentbusError | None = None
