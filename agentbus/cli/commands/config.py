"""`agentbus config`: what holds, and what may be written in the file."""

from __future__ import annotations

from typing import Any

import msgspec
import typer

from agentbus.cli.examples import epilog
from agentbus.cli.options import AsJson, ConfigPath
from agentbus.cli.output import print_json, show
from agentbus.cli.settings_table import settings_table
from agentbus.config import Configuration, load, schema

app = typer.Typer(help="Show settings, and what they may be.", no_args_is_help=True)


@app.command("show", epilog=epilog("config show"))
def show_settings(config: ConfigPath = None, as_json: AsJson = False) -> None:
    """Print the effective settings and where each came from."""
    loaded = load(config)
    if as_json:
        print_json(as_document(loaded))
    else:
        show(settings_table(loaded))


@app.command("schema", epilog=epilog("config schema"))
def print_schema(config: ConfigPath = None) -> None:  # noqa: ARG001 - all commands take it
    """Print the JSON schema of the configuration file, whichever that is."""
    print_json(schema())


def as_document(loaded: Configuration) -> dict[str, Any]:
    """What `config show --json` prints."""
    values = msgspec.to_builtins(loaded.settings)
    return {
        "path": loaded.path,
        "exists": loaded.exists,
        "settings": {
            key: {"value": value, "from": "file" if key in loaded.given else "default"}
            for key, value in values.items()
        },
    }
