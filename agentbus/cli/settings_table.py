"""Effective settings as a table; pure."""

from __future__ import annotations

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from agentbus.config import Configuration


def settings_table(loaded: Configuration) -> RenderableType:
    """Every setting, its value as it would stand in the file, and whether the file gives it."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("SETTING", no_wrap=True)
    table.add_column("VALUE", overflow="fold")
    table.add_column("FROM", no_wrap=True)
    for key in loaded.settings.__struct_fields__:
        value = msgspec.json.encode(getattr(loaded.settings, key)).decode()
        given = key in loaded.given
        origin = Text("file", "bold") if given else Text("default", "dim")
        table.add_row(Text(key), Text(value, "bold" if given else ""), origin)
    state = "" if loaded.exists else " (absent: defaults hold)"
    return Group(Text(f"{loaded.path}{state}", overflow="fold"), Text(), table)
