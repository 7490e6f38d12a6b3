"""`agentbus demo`: a crash, and what becomes of the messages, before one's eyes."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer
from rich.console import Console

from agentbus.cli.demo.place import Place
from agentbus.cli.demo.script import CAST, Script
from agentbus.cli.demo.story import Story
from agentbus.cli.options import ConfigPath
from agentbus.config import load
from agentbus.runtime import exits

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def demo(
    config: ConfigPath = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="No pauses for reading (as when it is piped).")
    ] = False,
) -> None:
    """Show three agents talk, crash and recover, on a bus of their own.

    Of your settings only redis_executable is used.
    """
    for ending in ENDINGS:
        signal.signal(ending, _end)
    console = Console(highlight=False)
    pace = 0.0 if fast or not console.is_terminal else 1.0
    with Place(load(config).settings.redis_executable) as place:
        story = Story(console, [name for name, _ in CAST], pace)
        script = Script(place, story, [sys.executable, "-m", "agentbus", "mcp", *place.options])
        try:
            well = script.run()
        finally:
            _no_more_interruptions()
            script.close()
    story.verdict(well=well)
    raise typer.Exit(exits.OK if well else exits.FAILED)


def _end(number: int, _frame: object) -> None:
    """Unwinds, so that everything is cleaned up."""
    sys.stderr.write("\nagentbus demo: interrupted; cleaning up\n")
    raise SystemExit(128 + number)


def _no_more_interruptions() -> None:
    """Cleaning up takes a second, and has to be finished."""
    for ending in ENDINGS:
        signal.signal(ending, signal.SIG_IGN)
