"""`agentbus status`: what runs, who is connected, what waits for whom."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console

from agentbus.cli.dashboard import dashboard
from agentbus.cli.options import AsJson, ConfigPath
from agentbus.cli.output import print_json, show
from agentbus.cli.snapshot import read
from agentbus.cli.watching import is_plain, watch
from agentbus.client import admin
from agentbus.config import Configuration, load
from agentbus.errors import InvalidArgument, NotRunning, Unavailable
from agentbus.runtime import exits
from agentbus.runtime.clock import SystemClock
from agentbus.runtime.failures import last_failure
from agentbus.runtime.paths import log_file

STOPPED: dict[str, Any] = {"state": "stopped"}

Watch = Annotated[
    bool, typer.Option("--watch", "-w", help="Stay, and show it anew each second; q ends it.")
]


def status(config: ConfigPath = None, as_json: AsJson = False, watching: Watch = False) -> None:
    """Show the state of the bus. Exit code 0 ready, 3 not running, 4 running but not ready."""
    configuration = load(config)
    if watching:
        _watch(configuration, as_json=as_json)
        return
    document = _look(configuration)
    if as_json:
        print_json(document)
    else:
        now = datetime.fromtimestamp(SystemClock().now().wall, UTC)
        show(dashboard(read(document), now, plain=is_plain(Console())))
    raise typer.Exit(exit_code(document["state"]))


def _look(configuration: Configuration) -> dict[str, Any]:
    try:
        return admin.status(configuration)
    except NotRunning:
        failure = last_failure(log_file(configuration.settings, "supervisor"))
        reasons = [f"the last daemon failed: {failure}; the next call of an agent starts another"]
        return STOPPED | ({"reasons": reasons} if failure else {})


def _watch(configuration: Configuration, *, as_json: bool) -> None:
    if as_json or not sys.stdout.isatty():
        raise InvalidArgument("--watch needs a terminal, and goes without --json")

    def look() -> dict[str, Any]:
        try:
            return _look(configuration)
        except Unavailable as error:
            return {"state": "silent", "reasons": [error.message]}

    watch(look)


def exit_code(state: str) -> int:
    """What the state means to a script."""
    return {"ready": exits.OK, "stopped": exits.NOT_RUNNING}.get(state, exits.NOT_READY)
