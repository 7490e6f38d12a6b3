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
from agentbus.cli.examples import epilog
from agentbus.errors import AgentbusError
from agentbus.runtime import exits, refusals

app = typer.Typer(
    name="agentbus",
    help="A local message bus and shared memory for the coding agents on this machine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("mcp", epilog=epilog("mcp"))(mcp.mcp)
app.command("daemon", epilog=epilog("daemon"))(daemon.daemon)
app.command("status", epilog=epilog("status"))(status.status)
app.command("doctor", epilog=epilog("doctor"))(doctor.doctor)
app.command("stop", epilog=epilog("stop"))(stop.stop)
app.command("reset", epilog=epilog("reset"))(reset.reset)
app.command("init", epilog=epilog("init"))(init.init)
app.command("wait", epilog=epilog("wait"))(wait.wait)
app.command("hook", epilog=epilog("hook"))(hook.hook)
app.command("tail", epilog=epilog("tail"))(tail.tail)
app.command("send", epilog=epilog("send"))(send.send)
app.command("search", epilog=epilog("search"))(search.search)
app.command("demo", epilog=epilog("demo"))(demo.demo)
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
