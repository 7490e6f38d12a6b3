"""`agentbus init`: connects the harnesses of this user, or the repository around."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from agentbus.cli import connecting
from agentbus.cli.options import ConfigPath
from agentbus.config import load
from agentbus.errors import InvalidArgument
from agentbus.harness import connect
from agentbus.harness.connect import Outcome
from agentbus.harness.programs import NAMES
from agentbus.harness.record import Record, locked

Everywhere = Annotated[bool, typer.Option("--global", help="The harnesses of this user.")]
HarnessName = Annotated[
    str | None,
    typer.Option("--harness", metavar="NAME", help=f"Only this one of {', '.join(NAMES)}."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change, change nothing.")]
Remove = Annotated[bool, typer.Option("--remove", help="Put back what was there before.")]
Agent = Annotated[
    str | None, typer.Option("--agent", metavar="NAME", help="Who works in this repository.")
]
Channels = Annotated[
    list[str] | None,
    typer.Option("--channel", metavar="NAME", help="A channel to join here; once for each."),
]


def init(
    everywhere: Everywhere = False,
    harness: HarnessName = None,
    dry_run: DryRun = False,
    remove: Remove = False,
    agent: Agent = None,
    channel: Channels = None,
    config: ConfigPath = None,
) -> None:
    """Connect the harnesses of this user (--global), or the repository around.

    With --global each harness that is found gets the MCP server and, where it has them, hooks, in
    its own configuration files; a copy of each file is kept. Without it, .agentbus.json in the
    repository names its agent and the channels it joins, and these channels are created.
    """
    _check(everywhere, harness, agent or channel)
    path = str(config) if config else None
    load(config)
    if everywhere:
        work = connecting.harnesses(harness, path, dry=dry_run, remove=remove)
    elif remove:
        work = connecting.forget_repository(dry=dry_run)
    else:
        work = connecting.repository(agent, channel or [], load(config), dry=dry_run)
    raise typer.Exit(connecting.tell(_done(work, dry_run), dry=dry_run, remove=remove))


def _check(everywhere: bool, harness: str | None, here: object) -> None:
    if harness is not None and harness not in NAMES:
        raise InvalidArgument(f"no harness is called {harness}; known are {', '.join(NAMES)}")
    if harness is not None and not everywhere:
        raise InvalidArgument("--harness belongs to --global: agentbus init --global --harness ...")
    if here and everywhere:
        raise InvalidArgument("--agent and --channel are a repository's; leave out --global")


def _done(work: Callable[[Record], list[Outcome]], dry: bool) -> list[Outcome]:
    directory = connect.record_directory(connect.this_machine())
    if dry:
        return work(Record(directory))
    with locked(directory) as record:
        outcomes = work(record)
        record.tidy()
    return outcomes
