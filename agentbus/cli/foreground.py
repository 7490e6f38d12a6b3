"""The daemon in this process, without the CLI's libraries.

What is imported here stays in the supervisor and in every process that it forks, so
`agentbus.__main__` comes here directly where the command line is of the plain shape.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from agentbus.config import load
from agentbus.errors import AgentbusError
from agentbus.runtime import exits
from agentbus.supervisor.report import Report
from agentbus.supervisor.supervisor import run_daemon
from agentbus.wire.error_codes import to_data


class Arguments(msgspec.Struct, frozen=True):
    """`report_fds` are where one line tells the starter how it went (see `supervisor.report`)."""

    config: str | None = None
    report_fds: tuple[int, ...] = ()


def parse(arguments: Sequence[str]) -> Arguments | None:
    """The arguments of `daemon` where they ask for the foreground and nothing is odd, else None."""
    rest = [argument for argument in arguments if argument != "--foreground"]
    if len(rest) == len(arguments) or len(rest) % 2:
        return None
    given = dict(zip(rest[::2], rest[1::2], strict=True))
    config, numbers = given.pop("--config", None), given.pop("--report-fd", None)
    report_fds = descriptors(numbers)
    if given or (numbers is not None and not report_fds):
        return None
    return Arguments(config, report_fds)


def descriptors(numbers: str | None) -> tuple[int, ...]:
    """Of `7` or `7,8`; none where it is anything else."""
    parts = (numbers or "").split(",")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()


def run(arguments: Arguments) -> int:
    """Until the daemon ends; its exit code. Errors go to stderr and to the report."""
    try:
        configuration = load(arguments.config)
    except AgentbusError as error:
        sys.stderr.write(f"agentbus: {error.line}\n")
        Report(*arguments.report_fds).failure(to_data(error))
        return exits.FAILED
    return run_daemon(configuration, arguments.report_fds)
