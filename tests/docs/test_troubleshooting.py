"""The page has every check of `doctor` and every code of the errors."""

from __future__ import annotations

import re
from pathlib import Path

from agentbus.cli.doctor.checks import CHECKS
from agentbus.cli.doctor.checks.storage import LITTLE, MIB, SCARCE
from agentbus.errors import BY_CODE

PAGE = (Path(__file__).resolve().parents[2] / "docs/troubleshooting.md").read_text()


def rows(heading: str) -> list[str]:
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]


def test_every_check_is_there_in_its_order():
    assert [row.strip() for row in rows("What doctor looks at")] == [
        f"`{name}`" for name, _ in CHECKS
    ]


def test_every_code_is_there():
    codes = {code for row in rows("A call fails") for code in re.findall(r"`(\w+)`", row)}
    assert codes == set(BY_CODE)


def test_the_bounds_of_the_disk_are_those_of_the_check():
    assert f"less than {SCARCE // MIB} MiB free (problem) or {LITTLE // MIB // 1024} GiB" in PAGE
