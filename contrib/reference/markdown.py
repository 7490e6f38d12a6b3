"""Pieces of markdown."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

NOTE = "<!-- Made by `python -m reference` in contrib/ from {source}; change that, not this. -->\n"


def prose(docstring: str | None) -> str:
    """A docstring as markdown, which ours nearly are."""
    return inspect.cleandoc(docstring or "")


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    cells = ([cell.replace("\n", " ").replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"
