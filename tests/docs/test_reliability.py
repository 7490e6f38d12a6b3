"""The page on reliability names tests, and commands, that there are."""

from __future__ import annotations

import re

import pytest

from agentbus.runtime.faults import Point
from tests.support import tables

PAGE = "docs/reliability.md"
ROWS = tables.rows(PAGE, 5)
NOT_RUN = "Cannot be run here"


def section_of(promise: str, fault: str) -> str:
    before = (tables.ROOT / PAGE).read_text().split(f"| {promise} | {fault} |")[0]
    return before.rpartition("\n## ")[2].partition("\n")[0]


def test_there_are_rows_and_each_fault_stands_once() -> None:
    assert ROWS
    faults = [(promise, fault) for promise, fault, *_ in ROWS]
    assert len(set(faults)) == len(faults)


@pytest.mark.parametrize(
    ("promise", "fault", "happens", "long", "tests"),
    ROWS,
    ids=[f"{fault}: {promise}" for promise, fault, *_ in ROWS],
)
def test_a_row_is_full_and_names_what_shows_it(
    promise: str, fault: str, happens: str, long: str, tests: str
) -> None:
    assert all((promise, fault, happens, long, tests))
    shown = tables.quoted(tests)
    assert shown or section_of(promise, fault) == NOT_RUN
    assert [name for name in shown if not is_there(name)] == []


def is_there(name: str) -> bool:
    """A test below `tests/`, or a file of the repository that makes the check as a command."""
    return tables.names_a_test(name) if "::" in name else (tables.ROOT / name).is_file()


@pytest.mark.parametrize("point", Point)
def test_a_test_kills_at_every_point(point: Point) -> None:
    tests = (tables.ROOT / "tests/crash").glob("test_*.py")
    assert any(re.search(rf"\bPoint\.{point.name}\b", test.read_text()) for test in tests)
