"""`agentbus wait`: ends, or prints a line, when messages wait for a session."""

from __future__ import annotations

import os
from typing import Annotated

import msgspec
import typer

from agentbus.cli.options import AsJson, ConfigPath
from agentbus.cli.text import one_line
from agentbus.client import waiting
from agentbus.config import Configuration, load
from agentbus.errors import InvalidArgument
from agentbus.harness.caller import find_session
from agentbus.runtime import exits
from agentbus.runtime.paths import locate
from agentbus.wire.rpc import InboxEntry

Application = Annotated[
    str | None, typer.Option(metavar="A", help="The harness program, with --session.")
]
SessionId = Annotated[
    str | None, typer.Option(metavar="S", help="Its conversation, with --application.")
]
Child = Annotated[str | None, typer.Option(metavar="ID", help="A subagent of it.")]
Channels = Annotated[
    list[str] | None,
    typer.Option("--channel", metavar="C", help="Only these; once for each."),
]
Seconds = Annotated[
    float | None, typer.Option("--timeout", metavar="S", min=0, help="Seconds to wait at most.")
]
Follow = Annotated[bool, typer.Option("--follow", help="Print a line each time; do not end.")]


def wait(
    application: Application = None,
    session: SessionId = None,
    child: Child = None,
    channel: Channels = None,
    timeout: Seconds = None,
    follow: Follow = False,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Wait until a session has undelivered messages, and print how many; nothing is delivered.

    Run by an agent in its shell, it is the agent's own session that it waits for. Exit code 0 when
    messages wait, 5 when the time is over. A bus that is stopped or restarted is waited for.
    """
    configuration = load(config)
    who = _session(configuration, application, session, child)
    waiter = waiting.Waiter(configuration, who, channel or [])
    try:
        told = waiting.wait(
            waiter, timeout, lambda entries: _print(entries, as_json=as_json), follow=follow
        )
    finally:
        waiter.close()
    raise typer.Exit(exits.OK if told else exits.TIMED_OUT)


def _session(
    configuration: Configuration, application: str | None, session: str | None, child: str | None
) -> waiting.Session:
    if application and session:
        return waiting.Session(application, session, child)
    if application or session or child:
        raise InvalidArgument("--application and --session belong together")
    return find_session(os.environ, locate(configuration.settings).runtime_directory)


def _print(entries: list[InboxEntry], *, as_json: bool) -> None:
    """One line, at once: somebody waits for it."""
    total = sum(entry.undelivered for entry in entries)
    if as_json:
        document = {"undelivered": total, "channels": entries}
        typer.echo(msgspec.json.encode(document))
        return
    counts = ", ".join(f"{one_line(entry.channel)} {entry.undelivered}" for entry in entries)
    typer.echo(f"{total} undelivered: {counts}")
