"""`agentbus mcp`: the shell around the adapter's core, a plain loop over a few descriptors.

No decision is made here. One adapter runs per harness session, so nothing heavy is imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from agentbus import __version__
from agentbus.adapter.core import AdapterCore, Launch
from agentbus.adapter.identity import CLAUDE_SESSION, NAME_BYTES, Given, find_project
from agentbus.adapter.shell import STDIN, STDOUT, Shell
from agentbus.config import Settings, load
from agentbus.errors import ConfigInvalid
from agentbus.runtime import rendezvous, testing
from agentbus.runtime.paths import locate
from agentbus.runtime.tokens import SystemTokens

USAGE: Final = (
    "usage: agentbus mcp [--agent NAME] [--application NAME] [--session ID] "
    "[--child ID --parent ID --role R] [--config PATH]"
)
STDERR: Final = 2

NO_STREAMS: Final = 1
USAGE_ERROR: Final = 2

_OPTIONS: Final = ("agent", "application", "session", "child", "parent", "role", "config")


class _Misused(Exception):
    pass


def main(arguments: Sequence[str]) -> int:
    """Serves one harness session until it ends; the exit code."""
    if not (_is_open(STDIN) and _is_open(STDOUT)):
        return _without_streams()
    try:
        options = parse(arguments)
        start = given(options, os.environ)
        tested = testing.requested() is not None
    except (_Misused, ConfigInvalid) as problem:
        sys.stderr.write(f"agentbus mcp: {problem}\n{USAGE}\n")
        return USAGE_ERROR
    settings = _settings(options.get("config"))
    left = partial(rendezvous.find, locate(settings).runtime_directory, os.getppid())
    launch = Launch(start, find_project(_directory()), settings, __version__, left)
    core = AdapterCore(launch, SystemTokens())
    if tested:
        from agentbus.adapter import points  # noqa: PLC0415 - nobody else is to wait for it

        core = points.watched(core)
    return Shell(core, options.get("config")).run()


def _is_open(fd: int) -> bool:
    """Only before anything is opened, which would get the number of a descriptor that is closed."""
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _without_streams() -> int:
    """Past `sys.stderr`, whose buffer would decide the exit code where it cannot be written."""
    with suppress(OSError):
        os.write(STDERR, b"agentbus mcp: stdin and stdout must be open, a harness talks there\n")
    return NO_STREAMS


def parse(arguments: Sequence[str]) -> dict[str, str]:
    """The options by name. Raises what `main` answers with the usage."""
    options: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        name, joined, value = rest.pop(0).partition("=")
        key = name.removeprefix("--")
        if name == key or key not in _OPTIONS:
            raise _Misused(f"there is no option {name}")
        if not joined:
            if not rest:
                raise _Misused(f"{name} needs a value")
            value = rest.pop(0)
        options[key] = value
    return options


def given(options: Mapping[str, str], environ: Mapping[str, str]) -> Given:
    """What options and environment say about the caller. Raises as `parse` does."""
    for key in ("agent", "application", "session", "child", "role"):
        value = options.get(key)
        if value is not None and not _is_name(value):
            raise _Misused(f"--{key} is 1 to {NAME_BYTES} bytes without control characters")
    child, parent = options.get("child"), options.get("parent")
    if (child is None) != (parent is None):
        raise _Misused("--child and --parent belong together")
    session = options.get("session")
    if child is not None and session not in (None, parent):
        raise _Misused("--session of a child is its parent")
    return Given(
        fallback=SystemTokens().token(),
        agent=options.get("agent"),
        application=options.get("application"),
        session=parent if child is not None else session,
        child=child,
        role=options.get("role"),
        claude_session=environ.get(CLAUDE_SESSION),
    )


def _is_name(value: str) -> bool:
    return 1 <= len(value.encode(errors="replace")) <= NAME_BYTES and value.isprintable()


def _directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return os.path.expanduser("~")


def _settings(config: str | None) -> Settings:
    """For the tools' limits; what is wrong with the file is told when the daemon is reached for."""
    try:
        return load(config).settings
    except ConfigInvalid:
        return Settings()
