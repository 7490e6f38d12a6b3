"""What a check says."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from agentbus.errors import AgentbusError


class Result(StrEnum):
    """How bad it is; only a problem makes the exit code 1."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class Finding(msgspec.Struct, frozen=True):
    """A sentence of one check, and what to do about it: commands, or advice in words."""

    result: Result
    found: str
    do: tuple[str, ...] = ()


Findings = Iterable[Finding]


def ok(found: str) -> Finding:
    """Nothing is wrong there."""
    return Finding(Result.OK, found)


def warning(found: str, *do: str) -> Finding:
    """It works, but something should be looked at."""
    return Finding(Result.WARNING, found, do)


def problem(found: str, *do: str) -> Finding:
    """Messages do not arrive, or will not."""
    return Finding(Result.PROBLEM, found, do)


def of_error(error: AgentbusError, *do: str) -> Finding:
    """A problem as it is told everywhere else. Messages end with what to do, behind a semicolon."""
    found, separator, advice = error.message.rpartition("; ")
    if do or not separator:
        return problem(error.message, *do)
    return problem(found, advice.removeprefix("run: "))
