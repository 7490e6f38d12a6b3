"""What stands in contrib for doing it by hand is what `agentbus init` writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentbus.harness.changes import applied
from agentbus.harness.programs import HARNESSES, Harness, Machine, Start

CONTRIB = Path(__file__).resolve().parents[2] / "contrib"


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.name)
def test_each_harness_has_its_files_and_says_where_they_go(harness: Harness) -> None:
    folder = CONTRIB / harness.name
    targets = harness.targets(Machine("/home/you"), Start(["agentbus"]))
    written = {
        os.path.basename(target.path).lstrip("."): applied(target.changes, None)
        for target in targets
    }
    files = {path.name: path.read_text() for path in folder.iterdir() if path.name != "README.md"}
    assert files == written
    page = (folder / "README.md").read_text()
    assert all(f"({name})" in page for name in files)
    assert f"agentbus init --global --harness {harness.name}" in page
