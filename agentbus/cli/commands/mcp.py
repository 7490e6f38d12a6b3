"""`agentbus mcp`: here only for the help; `agentbus.__main__` takes the direct way."""

from __future__ import annotations

from typing import Annotated

import typer

from agentbus.adapter.main import main as adapter
from agentbus.cli.options import ConfigPath


def mcp(
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="Persistent name of the agent.")
    ] = None,
    application: Annotated[
        str | None, typer.Option(metavar="NAME", help="The harness program, with --session.")
    ] = None,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Its conversation, with --application.")
    ] = None,
    child: Annotated[
        str | None, typer.Option(metavar="ID", help="A subagent of it, with --parent.")
    ] = None,
    parent: Annotated[
        str | None, typer.Option(metavar="ID", help="The root conversation of --child.")
    ] = None,
    role: Annotated[str | None, typer.Option(metavar="R", help="What the child does.")] = None,
    config: ConfigPath = None,
) -> None:
    """Serve MCP on stdin and stdout: what a harness starts, one for each session."""
    given = {
        "agent": agent,
        "application": application,
        "session": session,
        "child": child,
        "parent": parent,
        "role": role,
        "config": str(config) if config else None,
    }
    arguments = [part for name, value in given.items() if value for part in (f"--{name}", value)]
    raise typer.Exit(adapter(arguments))
