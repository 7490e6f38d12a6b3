"""The typer application: which commands there are, and how errors reach a person."""

from __future__ import annotations

import os
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
from agentbus.cli.examples import epilog, help_of
from agentbus.errors import AgentbusError
from agentbus.runtime import exits, refusals

app = typer.Typer(
    name="agentbus",
    help="A local message bus and shared memory for the coding agents on this machine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for each in (
    mcp.mcp,
    daemon.daemon,
    status.status,
    doctor.doctor,
    stop.stop,
    reset.reset,
    init.init,
    wait.wait,
    hook.hook,
    tail.tail,
    send.send,
    search.search,
    demo.demo,
):
    app.command(each.__name__, help=help_of(each), epilog=epilog(each.__name__))(each)
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


def _open_streams() -> None:
    """Whoever starts this may have closed them; a socket must not get the number of one."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest that is free
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 - for the whole process
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def main(arguments: Sequence[str]) -> int:
    """Runs one command. An error becomes one line on stderr: its code, and what to do."""
    _open_streams()
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
