"""The person at this terminal."""

from __future__ import annotations

import contextlib
import getpass
import os
import signal
import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from agentbus.client.person import Person
from agentbus.config import Configuration

As = Annotated[
    str | None,
    typer.Option("--as", metavar="NAME", help="Your name on the bus, instead of your login."),
]
NOBODY = "person"


def person(configuration: Configuration, name: str | None, use: str) -> Person:
    """Whoever runs this command, for one use of this terminal."""
    agent = _login() if name is None else name
    return Person(configuration, agent, f"{use} {_terminal()} {agent}")


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Ends in order at Ctrl-C, when the terminal is closed, and when it is terminated."""

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = {each: signal.signal(each, interrupt) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        with contextlib.suppress(KeyboardInterrupt):
            yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return NOBODY


def _terminal() -> str:
    """One that is left and taken again is the same."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        try:
            return os.ttyname(stream.fileno())
        except (OSError, ValueError, AttributeError):
            continue
    return "elsewhere"
