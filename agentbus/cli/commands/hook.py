"""`agentbus hook`: here only for the help; `agentbus.__main__` takes the direct way."""

from __future__ import annotations

from typing import Annotated

import typer

from agentbus.cli.options import ConfigPath
from agentbus.harness.hook import HOOKS
from agentbus.harness.hook import main as run

Name = Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(sorted(HOOKS))}.")]


def hook(name: Name, config: ConfigPath = None) -> None:
    """Answer a harness that runs this as a hook; `agentbus init --global` tells it to.

    Reads what the harness says from stdin. Whatever goes wrong, it says nothing and ends with 0.
    """
    raise typer.Exit(run([name, *(["--config", str(config)] if config else [])]))
