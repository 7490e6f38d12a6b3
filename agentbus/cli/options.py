"""Options that several commands share, and what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

ConfigPath = Annotated[
    Path | None,
    typer.Option("--config", metavar="PATH", help="Configuration file instead of the usual one."),
]
"""What `config.load` takes: None means AGENTBUS_CONFIG or the default file."""

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document instead of text.")]


def print_json(document: dict[str, Any]) -> None:
    """One document on stdout: UTF-8, whatever the terminal's encoding is."""
    typer.echo(msgspec.json.format(msgspec.json.encode(document)))
