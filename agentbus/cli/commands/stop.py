"""`agentbus stop`: an orderly end."""

from __future__ import annotations

import typer

from agentbus.cli.options import ConfigPath
from agentbus.client import admin
from agentbus.config import load
from agentbus.errors import NotRunning


def stop(config: ConfigPath = None) -> None:
    """Stop the bus in order; what it has accepted stays. Fine where nothing runs."""
    try:
        admin.stop(load(config))
    except NotRunning:
        typer.echo("agentbus is not running")
    else:
        typer.echo("agentbus has stopped")
