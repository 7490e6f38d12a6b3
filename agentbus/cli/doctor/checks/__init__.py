"""The checks: each a pure function of the facts, under the name that people see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from agentbus.cli.doctor.checks import agents, daemon, installation, storage
from agentbus.cli.doctor.facts import Facts
from agentbus.cli.doctor.findings import Finding, Findings

CHECKS: Final[tuple[tuple[str, Callable[[Facts], Findings]], ...]] = (
    ("configuration", installation.configuration),
    ("sqlite", installation.sqlite),
    ("redis", installation.redis),
    ("inspection hook", installation.inspection_hook),
    ("open files", installation.open_files),
    ("directories", storage.directories),
    ("socket", storage.socket),
    ("files", storage.files),
    ("disk", storage.disk),
    ("database", storage.database),
    ("daemon", daemon.daemon),
    ("upgrade", daemon.upgrade),
    ("state", daemon.state),
    ("clock", daemon.clock),
    ("harnesses", agents.harnesses),
    ("hooks", agents.hooks),
    ("repository", agents.repository),
    ("sessions", agents.sessions),
    ("channels", agents.channels),
)


class Examined(msgspec.Struct, frozen=True):
    """A finding and the check that made it."""

    check: str
    finding: Finding


def examine(facts: Facts) -> list[Examined]:
    """Everything that is to be said, in the order of `CHECKS`. A check may say nothing."""
    return list(_examined(facts))


def _examined(facts: Facts) -> Iterator[Examined]:
    for name, check in CHECKS:
        for finding in check(facts):
            yield Examined(name, finding)
