"""As many seeds as fit: random messages, cancelled calls and faults; nothing is ever lost."""

from __future__ import annotations

import os

import pytest

from tests.support.simulation.runs import Failed, Report, Spent, run, summary

SECONDS = float(os.environ.get("AGENTBUS_SIMULATION_SECONDS", "20"))
FIRST = int(os.environ.get("AGENTBUS_SIMULATION_FIRST", "1"))
FEWEST = 3
"""However slow the machine is."""


@pytest.mark.timeout(SECONDS + 100)
def test_nothing_is_lost_whatever_happens(capsys):
    spent = Spent()
    reports: list[Report] = []
    while spent.seconds < SECONDS or len(reports) < FEWEST:
        try:
            reports.append(run(FIRST + len(reports)))
        except Failed as failed:
            pytest.fail("\n".join([*failed.trace[-40:], str(failed)]), pytrace=False)
    with capsys.disabled():
        print(f"\nsimulation: {summary(reports, spent)}")
