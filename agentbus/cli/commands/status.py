"""`agentbus status`: what runs, who is connected, what waits for whom."""

from __future__ import annotations

from typing import Any

import typer

from agentbus.cli.dashboard import dashboard
from agentbus.cli.options import AsJson, ConfigPath
from agentbus.cli.output import print_json, show
from agentbus.cli.snapshot import read
from agentbus.client import admin
from agentbus.config import load
from agentbus.errors import NotRunning
from agentbus.runtime import exits

STOPPED: dict[str, Any] = {"state": "stopped"}


def status(config: ConfigPath = None, as_json: AsJson = False) -> None:
    """Show the state of the bus. Exit code 0 ready, 3 not running, 4 running but not ready."""
    try:
        document = admin.status(load(config))
    except NotRunning:
        document = STOPPED
    if as_json:
        print_json(document)
    else:
        show(dashboard(read(document)))
    raise typer.Exit(exit_code(document["state"]))


def exit_code(state: str) -> int:
    """What the state means to a script."""
    return {"ready": exits.OK, "stopped": exits.NOT_RUNNING}.get(state, exits.NOT_READY)
