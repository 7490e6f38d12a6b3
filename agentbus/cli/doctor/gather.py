"""Looks at the machine, and changes nothing: no directory is made, no database opened, no daemon
started. Every question to another program has a bound."""

from __future__ import annotations

import importlib
import os
import platform
import resource
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from agentbus import __version__, config, sqlite
from agentbus.adapter.identity import find_project
from agentbus.cli.doctor import asking
from agentbus.cli.doctor.facts import (
    Database,
    Directory,
    Disk,
    Facts,
    File,
    Harness,
    Program,
    Server,
    Settings,
)
from agentbus.config import CONFIG_VARIABLE, Configuration
from agentbus.errors import AgentbusError, ConfigInvalid, DatabaseDamaged
from agentbus.harness import connect
from agentbus.harness.state import Entry, State, states
from agentbus.runtime.clock import clock
from agentbus.runtime.paths import RUNTIME_VARIABLE, Paths, check_usable, locate
from agentbus.store import schema
from agentbus.supervisor import redis_discovery
from agentbus.wire.rpc import PROTOCOL
from agentbus.writer.mark import Mark

REDIS_SECONDS: Final = 1.0
HEADER_BYTES: Final = 100
UNBOUND: Final = 2**31
INTERPRETER: Final = "python"

Environment = Mapping[str, str]


def gather(path: str | None, environ: Environment = os.environ) -> Facts:
    """`path` is that of `--config`. What depends on settings is left out where none hold."""
    configuration, error = _load(path)
    known = configuration or Configuration(config.Settings(), "", exists=False)
    paths = locate(known.settings, environ)
    machine, program = connect.this_machine(environ), connect.this_program(path, environ)
    places = _places(paths, with_data=configuration is not None)
    return Facts(
        now=clock().now().wall,
        uid=os.getuid(),
        this=program.command[0],
        program=_program(),
        settings=_settings(configuration, error, path, environ),
        directories=[_directory(role, place) for role, place in places.items()],
        files=list(_files(paths)) if configuration else [],
        disks=list(_disks([places[role] for role in ("data", "runtime") if role in places])),
        server=_server(configuration),
        database=_database(paths.database) if configuration else None,
        bus=asking.ask(configuration, paths),
        harnesses=[_harness(each, known.path, paths, environ) for each in states(machine, program)],
        project=_project(),
    )


def _project() -> AgentbusError | None:
    """What is wrong with the repository around; a directory that is gone is in none."""
    with suppress(FileNotFoundError):
        return find_project(os.getcwd()).problem
    return None


def _load(path: str | None) -> tuple[Configuration | None, AgentbusError | None]:
    try:
        return config.load(path), None
    except AgentbusError as error:
        return None, error


# ---- the installation


def _program() -> Program:
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Program(
        version=__version__,
        protocol=PROTOCOL,
        python=platform.python_version(),
        sqlite=sqlite.LIBRARY,
        has_fts5=sqlite.has_fts5(),
        changed_at=max(map(_written_at, _sources()), default=0.0),
        open_files=UNBOUND if files == resource.RLIM_INFINITY else files,
    )


def _sources() -> Iterator[str]:
    package = os.path.dirname(sys.modules["agentbus"].__file__ or "")
    for directory, _, names in os.walk(package):
        yield from (os.path.join(directory, name) for name in names if name.endswith(".py"))


def _written_at(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _settings(
    known: Configuration | None, error: AgentbusError | None, path: str | None, environ: Environment
) -> Settings:
    if known is None:
        chosen = path or environ.get(CONFIG_VARIABLE) or config.DEFAULT_PATH
        return Settings(os.path.abspath(os.path.expanduser(chosen)), error=error)
    command = known.settings.inspection_command
    hook = command[0] if command else None
    found = None if hook is None else shutil.which(hook, path=environ.get("PATH"))
    return Settings(known.path, known.exists, len(known.given), hook=hook, hook_found=found)


def _server(known: Configuration | None) -> Server | AgentbusError | None:
    if known is None:
        return None
    try:
        found = redis_discovery.discover(known.settings, REDIS_SECONDS)
    except AgentbusError as error:
        return error
    return Server(found.executable, f"{found.flavour.capitalize()} {found.version}")


# ---- where it lives


def _places(paths: Paths, *, with_data: bool) -> dict[str, str]:
    """Directories by what they are for."""
    places = {"runtime": paths.runtime_directory, "socket": os.path.dirname(paths.socket)}
    places["Redis"] = paths.redis_directory
    if with_data:
        places["data"] = paths.data_directory
        places["snapshot"] = paths.snapshot_directory
        places["logs"] = paths.log_directory
    first: dict[str, str] = {}
    for role, place in places.items():
        if place not in first.values():
            first[role] = place
    return first


def _directory(role: str, path: str) -> Directory:
    exists = os.path.lexists(path)
    try:
        check_usable(path)
    except AgentbusError as error:
        return Directory(role, path, exists, error)
    except OSError as error:
        reason = ConfigInvalid(f"{path} cannot be looked at ({error.strerror})")
        return Directory(role, path, exists, reason)
    return Directory(role, path, exists)


def _files(paths: Paths) -> Iterator[File]:
    """Those of the bus that are there."""
    single = [paths.socket, paths.lock, paths.data_lock, paths.instance_mark, paths.reset_mark]
    endings = ("", "-wal", "-shm")
    single += [name + ending for name in (paths.database, paths.index) for ending in endings]
    for directory in (paths.log_directory, paths.snapshot_directory):
        try:
            single += sorted(os.path.join(directory, name) for name in os.listdir(directory))
        except OSError:
            continue  # the check of the directories tells
    for path in single:
        try:
            found = os.lstat(path)
        except OSError:
            continue
        yield File(path, found.st_uid, stat.S_IMODE(found.st_mode))


def _disks(directories: Iterable[str]) -> Iterator[Disk]:
    psutil: Any = importlib.import_module("psutil")
    kinds = {each.mountpoint: each.fstype for each in psutil.disk_partitions(all=True)}
    seen: set[int] = set()
    for directory in directories:
        existing = directory
        while not os.path.isdir(existing):
            existing = os.path.dirname(existing)
        device = os.stat(existing).st_dev
        if device in seen:
            continue
        seen.add(device)
        yield _disk(existing, kinds)


def _disk(directory: str, kinds: Mapping[str, str]) -> Disk:
    found = os.statvfs(directory)
    mount = os.path.realpath(directory)
    while mount not in kinds and mount != "/":
        mount = os.path.dirname(mount)
    return Disk(
        directory,
        found.f_bavail * found.f_frsize,
        found.f_blocks * found.f_frsize,
        found.f_favail if found.f_files else None,
        kinds.get(mount),
    )


def _database(path: str) -> Database:
    known = Database(path, schema.APPLICATION_ID, schema.SCHEMA)
    try:
        Mark(path).require_file()
    except DatabaseDamaged as error:
        return msgspec.structs.replace(known, lost=error)
    try:
        with open(path, "rb") as file:
            header = file.read(HEADER_BYTES)
            found = os.fstat(file.fileno())
    except FileNotFoundError:
        return known
    except OSError as error:
        return msgspec.structs.replace(known, unreadable=error.strerror)
    return msgspec.structs.replace(
        known,
        size=found.st_size,
        wal_bytes=_size(f"{path}-wal"),
        header=header,
        written_at=max(found.st_mtime, _written_at(f"{path}-wal")),
    )


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


# ---- harnesses


def _harness(state: State, path: str, paths: Paths, environ: Environment) -> Harness:
    known = Harness(
        state.name,
        state.title,
        state.file,
        lacking=state.lacking,
        passed_over=state.passed_over,
        error=state.error,
    )
    entry = state.entry
    if entry is None or not entry.words:
        return known
    command = entry.words[0]
    found = shutil.which(os.path.expanduser(command), path=environ.get("PATH"))
    return msgspec.structs.replace(
        known,
        connected=True,
        disabled=entry.disabled,
        command=command,
        found=found,
        same=found is None or _is_this(found),
        elsewhere=list(_elsewhere(entry, path, paths)),
    )


def _is_this(found: str) -> bool:
    """Whether it is of this installation, as far as its name tells what it starts."""
    name = os.path.basename(found)
    if name != "agentbus" and not name.startswith(INTERPRETER):
        return True
    here = os.path.dirname(sys.executable)
    places = {os.path.dirname(os.path.abspath(found)), os.path.dirname(os.path.realpath(found))}
    return here in places


def _elsewhere(entry: Entry, path: str, paths: Paths) -> Iterator[str]:
    """By what an adapter that is started so would not meet the bus of this command."""
    given = entry.option("--config") or entry.variables.get(CONFIG_VARIABLE)
    theirs = os.path.abspath(os.path.expanduser(given or config.DEFAULT_PATH))
    if path and os.path.realpath(theirs) != os.path.realpath(path):
        yield f"the configuration file ({theirs} there, {path} here)"
    runtime = entry.variables.get(RUNTIME_VARIABLE, "")
    home = {"HOME": os.path.expanduser("~"), RUNTIME_VARIABLE: runtime}
    there = locate(config.Settings(), home).runtime_directory
    if there != paths.runtime_directory:
        yield f"the runtime directory ({there} there, {paths.runtime_directory} here)"
