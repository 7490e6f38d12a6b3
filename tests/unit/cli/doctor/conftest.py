"""Facts of a machine on which nothing is wrong."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agentbus.cli.doctor.facts import Bus, Facts, Program, Settings

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()


@pytest.fixture
def facts():
    """Makes some; keywords replace members."""

    def make(**members):
        usual = {
            "now": NOON,
            "uid": 1000,
            "this": "/bin/agentbus",
            "program": Program("1", 1, "3.11", "3.40", True, 0.0, 65536),
            "settings": Settings("/c.json"),
            "directories": [],
            "files": [],
            "disks": [],
            "server": None,
            "database": None,
            "bus": Bus("/s"),
            "harnesses": [],
        }
        return Facts(**(usual | members))

    return make
