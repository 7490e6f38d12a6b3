"""Pythons that a test cannot have."""

from __future__ import annotations

import msgspec

from agentbus.cli.doctor.checks import installation
from agentbus.cli.doctor.findings import Result


def test_a_sqlite_without_text_search_is_a_problem(facts):
    known = facts()
    [fine] = installation.sqlite(known)
    assert fine.result is Result.OK
    program = msgspec.structs.replace(known.program, has_fts5=False)
    [found] = installation.sqlite(facts(program=program))
    assert found.result is Result.PROBLEM
    assert found.do
