"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigPath = Annotated[
    Path | None,
    typer.Option("--config", metavar="PATH", help="Configuration file instead of the usual one."),
]
"""What `config.load` takes: None means AGENTBUS_CONFIG or the default file."""

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document instead of text.")]
