"""The rules name modules and tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/rules.md"
ROW = re.compile(r"^\| (?!rule |---)(.+?) \| (.*?) \| (.*?) \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE.read_text())


def test_there_are_rules() -> None:
    assert len(ROWS) > 100
    names = [rule for rule, _, _ in ROWS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("rule", "modules", "tests"), ROWS, ids=[row[0] for row in ROWS])
def test_a_rule_names_where_it_lives_and_what_shows_it(rule: str, modules: str, tests: str) -> None:
    where, shown = re.findall(r"`([^`]+)`", modules), re.findall(r"`([^`]+)`", tests)
    assert where, rule
    assert shown, rule
    assert [name for name in where if not (ROOT / "agentbus" / name).is_file()] == []
    assert [name for name in shown if not exists(name)] == []


def exists(name: str) -> bool:
    path, _, test = name.partition("::")
    file = ROOT / "tests" / path
    return (
        file.is_file()
        and re.search(rf"^\s*(?:async )?def {test}\(", file.read_text(), re.M) is not None
    )
