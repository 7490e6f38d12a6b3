"""Tables of the documentation, and the tests that they name."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_QUOTED = re.compile(r"`([^`]+)`")
_LINE = re.compile(r"^\| (.*) \|$", re.MULTILINE)


def rows(page: str, columns: int) -> list[list[str]]:
    """The cells of every row of a page's tables, headings and rulers left out."""
    found = [cells.split(" | ") for cells in _LINE.findall((ROOT / page).read_text())]
    headings = {"rule", "promise"}
    kept = [[cell.strip() for cell in row] for row in found if row[0] not in headings]
    assert all(len(row) == columns for row in kept), [row for row in kept if len(row) != columns]
    return kept


def quoted(cell: str) -> list[str]:
    """What stands in backquotes."""
    return _QUOTED.findall(cell)


def names_a_test(name: str) -> bool:
    """Whether `path::test`, below `tests/`, is there."""
    path, _, test = name.partition("::")
    file = ROOT / "tests" / path
    return (
        file.is_file()
        and re.search(rf"^\s*(?:async )?def {test}\(", file.read_text(), re.M) is not None
    )
