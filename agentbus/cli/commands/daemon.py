"""`agentbus daemon`: the bus, in the background or here."""

from __future__ import annotations

from typing import Annotated

import typer

from agentbus.cli import foreground as here
from agentbus.cli.options import ConfigPath
from agentbus.cli.progress import Progress
from agentbus.client.start import start
from agentbus.config import load


def daemon(
    config: ConfigPath = None,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay in this terminal until Ctrl-C.")
    ] = False,
    report_fd: Annotated[str | None, typer.Option("--report-fd", hidden=True)] = None,
) -> None:
    """Start the bus unless it runs, and return when it is ready (or say why it is not).

    While it recovers, stderr says what it waits for.
    """
    if foreground or report_fd is not None:
        told = here.descriptors(report_fd)
        raise typer.Exit(here.run(here.Arguments(str(config) if config else None, told)))
    configuration = load(config)
    progress = Progress(configuration)
    pid = start(configuration, meanwhile=progress.look)
    progress.wait()
    typer.echo(f"agentbus is running (pid {pid})")
