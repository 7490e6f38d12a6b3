"""`agentbus reset`: a new, empty bus in place of this one."""

from __future__ import annotations

from typing import Annotated

import typer

from agentbus.cli.options import ConfigPath
from agentbus.client import admin
from agentbus.config import Configuration, load
from agentbus.errors import InvalidArgument, NotRunning, StorageFailed
from agentbus.runtime.paths import locate, prepare

WORD = "reset"

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def reset(config: ConfigPath = None, yes: Yes = False) -> None:
    """Destroy everything on the bus: messages, memories, identities, cursors, receipts.

    The configuration and the logs stay. Works whether the bus runs or not, also when its database
    is damaged.
    """
    configuration = load(config)
    if not yes:
        _confirm(configuration)
    try:
        admin.reset(configuration)
    except NotRunning:
        _offline(configuration)
    typer.echo("the bus is empty")


def _confirm(configuration: Configuration) -> None:
    typer.echo(
        f"This destroys all messages, memories, identities, cursors and receipts in "
        f"{configuration.settings.data_directory}. There is no way back.",
        err=True,
    )
    try:
        answer = typer.prompt(f"Type `{WORD}` to go on", default="", show_default=False, err=True)
    except typer.Abort:
        answer = ""
    if answer.strip() != WORD:
        raise InvalidArgument("nothing was reset; type the word, or pass --yes")


def _offline(configuration: Configuration) -> None:
    from agentbus.supervisor import wiping  # noqa: PLC0415 - only where no daemon does it

    paths = locate(configuration.settings)
    prepare(paths)
    left = wiping.wipe_offline(paths)
    if left:
        raise StorageFailed(f"reset could not remove all data: {left}")
