"""What is installed, and how it is configured."""

from __future__ import annotations

from typing import Final

from agentbus.cli.doctor.facts import Facts
from agentbus.cli.doctor.findings import Findings, of_error, ok, problem, warning
from agentbus.errors import AgentbusError

FEW_FILES: Final = 1024
"""Descriptors that are few: every session of every harness is a connection."""


def configuration(facts: Facts) -> Findings:
    """Whether the file can be read, and its settings hold."""
    settings = facts.settings
    if settings.error is not None:
        yield problem(
            settings.error.message,
            "correct the file; `agentbus config schema` prints what is allowed in it",
        )
    elif not settings.exists:
        yield ok(f"{settings.path} is not there: the defaults hold")
    else:
        yield ok(f"{settings.path} is valid ({settings.given} set)")


def sqlite(facts: Facts) -> Findings:
    """Whether Python's SQLite can index texts: every bus keeps its index so, unless Redis does."""
    program = facts.program
    if program.has_fts5:
        yield ok(f"SQLite {program.sqlite} with FTS5, Python {program.python}")
        return
    yield problem(
        f"SQLite {program.sqlite} of Python {program.python} was built without FTS5: nothing that "
        "is sent can be searched",
        "install agentbus with another Python (python.org, Homebrew, your distribution or uv)",
    )


def redis(facts: Facts) -> Findings:
    """Whether there is a server that the next start can use."""
    server = facts.server
    if isinstance(server, AgentbusError):
        yield of_error(server)
    elif server is not None:
        yield ok(f"{server.name} at {server.executable}")


def inspection_hook(facts: Facts) -> Findings:
    """Whether the program is there that decides on each message."""
    settings = facts.settings
    if settings.hook is None:
        return
    if settings.hook_found is None:
        yield problem(
            f"inspection_command is {settings.hook}, which is no program here: every send is "
            "refused with inspection_unavailable",
            f"correct or remove inspection_command in {settings.path}, then run: agentbus stop",
        )
    else:
        yield ok(f"{settings.hook_found} decides on each message")


def open_files(facts: Facts) -> Findings:
    """Whether the daemon may hold the connections of many sessions."""
    if facts.program.open_files < FEW_FILES:
        yield warning(
            f"a process may open {facts.program.open_files} files at most: a daemon that is "
            "started from here refuses connections beyond that",
            f"ulimit -Hn {FEW_FILES * 4} (as root, or in /etc/security/limits.conf)",
        )
