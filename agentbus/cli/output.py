"""What commands write on stdout."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import typer
from rich.console import Console, RenderableType


def print_json(document: dict[str, Any]) -> None:
    """One document: UTF-8, whatever the terminal's encoding is."""
    typer.echo(msgspec.json.format(msgspec.json.encode(document)))


def show(renderable: RenderableType, *, crop: bool = True) -> None:
    """For people: in colour on a terminal; in a pipe plain, without blanks at the ends of lines.

    With `crop` off a line that must not be broken, such as a command, runs on beyond the width.
    """
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(renderable, crop=crop)
        return
    with console.capture() as captured:
        console.print(renderable, crop=crop)
    sys.stdout.writelines(line.rstrip() + "\n" for line in captured.get().splitlines())
