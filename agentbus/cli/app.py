"""The typer application: which commands there are, and how errors reach a person."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Annotated

import typer

from agentbus import __version__
from agentbus.cli.commands import (
    config,
    daemon,
    demo,
    doctor,
    hook,
    init,
    mcp,
    reset,
    search,
    send,
    status,
    stop,
    tail,
    wait,
)
from agentbus.errors import AgentbusError
from agentbus.runtime import exits, refusals

app = typer.Typer(
    name="agentbus",
    help="A local message bus and shared memory for the coding agents on this machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("mcp")(mcp.mcp)
app.command("daemon")(daemon.daemon)
app.command("status")(status.status)
app.command("doctor")(doctor.doctor)
app.command("stop")(stop.stop)
app.command("reset")(reset.reset)
app.command("init")(init.init)
app.command("wait")(wait.wait)
app.command("hook")(hook.hook)
app.command("tail")(tail.tail)
app.command("send")(send.send)
app.command("search")(search.search)
app.command("demo")(demo.demo)
app.add_typer(config.app, name="config")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"agentbus {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """A local message bus and shared memory for the coding agents on this machine."""


def main(arguments: Sequence[str]) -> int:
    """Runs one command. An error becomes one line on stderr: its code, and what to do."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app(list(arguments), prog_name="agentbus")
    except AgentbusError as error:
        sys.stderr.write(f"agentbus: {error.line}\n")
        return exits.FAILED
    except OSError as error:
        sys.stderr.write(f"agentbus: {refusals.told(error, 'this cannot be done').line}\n")
        return exits.FAILED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else exits.FAILED
    return exits.OK
