"""`agentbus doctor`: why messages might not arrive, and what to do."""

from __future__ import annotations

import typer

from agentbus import __version__
from agentbus.cli.doctor.checks import examine
from agentbus.cli.doctor.gather import gather
from agentbus.cli.doctor.report import document, is_well, report
from agentbus.cli.options import AsJson, ConfigPath
from agentbus.cli.output import print_json, show
from agentbus.runtime import exits


def doctor(config: ConfigPath = None, as_json: AsJson = False) -> None:
    """Look for every reason why a message might not arrive, and say what mends it.

    Changes nothing, and works whether the bus runs or not. Exit code 0 when there is no problem
    (warnings do not count), 1 when there is one.
    """
    examined = examine(gather(str(config) if config else None))
    if as_json:
        print_json(document(__version__, examined))
    else:
        show(report(examined), crop=False)
    raise typer.Exit(exits.OK if is_well(examined) else exits.FAILED)
