"""The rules name modules and tests that there are."""

from __future__ import annotations

import pytest

from tests.support import tables

ROWS = tables.rows("docs/rules.md", 3)


def test_there_are_rules() -> None:
    assert len(ROWS) > 100
    names = [rule for rule, _, _ in ROWS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("rule", "modules", "tests"), ROWS, ids=[row[0] for row in ROWS])
def test_a_rule_names_where_it_lives_and_what_shows_it(rule: str, modules: str, tests: str) -> None:
    where, shown = tables.quoted(modules), tables.quoted(tests)
    assert where, rule
    assert shown, rule
    assert [name for name in where if not (tables.ROOT / "agentbus" / name).is_file()] == []
    assert [name for name in shown if not tables.names_a_test(name)] == []
