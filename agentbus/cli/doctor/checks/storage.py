"""Where the bus lives: directories, files, the disk below them, the database."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from agentbus.cli.dashboard.figures import size
from agentbus.cli.doctor.facts import Database, Disk, Facts, File
from agentbus.cli.doctor.findings import Finding, Findings, of_error, ok, problem, warning

MIB: Final = 1024 * 1024
SCARCE: Final = 64 * MIB
"""Free bytes with which the bus soon stops taking messages: what the WAL alone may grow to."""

LITTLE: Final = 1024 * MIB
FEW_NAMES: Final = 1000

REMOTE: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "afpfs", "9p", "fuse.sshfs"})
"""File systems on which SQLite's write-ahead log cannot be shared by processes, or locks do not
hold."""

OWNER_BITS: Final = 0o600
OTHERS_BITS: Final = 0o077


def directories(facts: Facts) -> Findings:
    """Whether each is there, or can be made, and is the user's alone."""
    wrong = [each for each in facts.directories if each.error is not None]
    for each in wrong:
        assert each.error is not None
        yield of_error(each.error)
    if not wrong:
        shown = (f"{each.role} {each.path}" for each in facts.directories)
        yield ok(", ".join(shown))


def socket(facts: Facts) -> Findings:
    """Where adapters connect to, which has to fit into an address."""
    bus = facts.bus
    if bus.moved:
        yield ok(f"{bus.socket}, since the path of the runtime directory is too long for a socket")
    else:
        yield ok(bus.socket)


def files(facts: Facts) -> Findings:
    """Whether everything that was written there is the user's: `sudo` leaves what is not."""
    for file in facts.files:
        yield from _file(file, facts.uid)


def _file(file: File, uid: int) -> Iterator[Finding]:
    quoted = shlex.quote(file.path)
    if file.uid != uid:
        yield problem(
            f"{file.path} belongs to user id {file.uid}, not to you ({uid})",
            f"sudo chown {uid} {quoted}",
        )
    elif file.mode & OWNER_BITS != OWNER_BITS:
        yield problem(f"{file.path} cannot be written", f"chmod u+rw {quoted}")
    elif file.mode & OTHERS_BITS and not file.path.endswith(".log"):
        yield warning(f"{file.path} is open to other users", f"chmod go= {quoted}")


def disk(facts: Facts) -> Findings:
    """Whether there is room, and whether it is a disk that the database can be on."""
    for each in facts.disks:
        yield from _disk(each)


def _disk(disk: Disk) -> Iterator[Finding]:
    quoted = shlex.quote(disk.path)
    shown = f"{disk.free // MIB:,} MiB of {disk.total // MIB:,} are free"
    if disk.kind in REMOTE:
        yield problem(
            f"{disk.path} is on a file system of another machine ({disk.kind}), where SQLite's "
            "locks and its write-ahead log do not hold",
            "set data_directory to a directory on a local disk, then run: agentbus stop",
        )
    if disk.free < SCARCE:
        yield problem(
            f"the disk of {disk.path} is full: {shown}; sends fail with storage_error",
            f"make room there (df -h {quoted}), or set data_directory to another disk",
        )
    elif disk.free_names is not None and disk.free_names < FEW_NAMES:
        yield problem(
            f"the disk of {disk.path} has room for {disk.free_names} more files only",
            f"remove files there (df -i {quoted})",
        )
    elif disk.free < LITTLE:
        yield warning(
            f"there is little room on the disk of {disk.path}: {shown}",
            f"make room there (df -h {quoted}), or lower sqlite_budget_mib and redis_budget_mib",
        )
    else:
        yield ok(f"{shown} at {disk.path}")


def database(facts: Facts) -> Findings:
    """Whether the file is there, whole, ours, and not of a newer version."""
    found = facts.database
    if found is None:
        return
    if found.lost is not None:
        yield of_error(found.lost)
    elif found.unreadable is not None:
        yield problem(f"{found.path} cannot be read ({found.unreadable})")
    elif not found.size:
        yield ok(f"{found.path} is made at the first start")
    else:
        yield from _header(found)


def _header(found: Database) -> Iterator[Finding]:
    backup = "put a backup in its place, or run `agentbus reset`, which destroys all messages"
    if not found.is_sqlite:
        yield problem(f"{found.path} is no SQLite database, or a damaged one", backup)
    elif found.application not in (0, found.our_application):
        yield problem(
            f"{found.path} is a database of another program",
            "move it away, or choose another data_directory",
        )
    elif found.schema > found.our_schema:
        yield problem(
            f"{found.path} was written by a newer agentbus (schema {found.schema}, this one knows "
            f"{found.our_schema})",
            "update agentbus, or choose another data_directory",
        )
    elif not found.wal_bytes and found.size < found.declared:
        yield problem(
            f"{found.path} was cut off: it has {found.size:,} bytes, and should have "
            f"{found.declared:,}",
            backup,
        )
    elif not found.has_wal:
        yield warning(
            f"the journal of {found.path} was changed by another program; the next start turns the "
            "write-ahead log on again",
            "agentbus stop",
        )
    else:
        yield ok(f"{found.path}, {size(found.size)}")
