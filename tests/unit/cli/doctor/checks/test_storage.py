"""Disks that a test cannot have."""

from __future__ import annotations

import pytest

from agentbus.cli.doctor.checks import storage
from agentbus.cli.doctor.facts import Disk
from agentbus.cli.doctor.findings import Result

ROOMY = Disk("/data", 1 << 40, 1 << 41, free_names=1 << 20, kind="ext4")


@pytest.mark.parametrize("kind", sorted(storage.REMOTE))
def test_a_file_system_of_another_machine_is_a_problem(facts, kind):
    disk = Disk("/data", 1 << 40, 1 << 41, kind=kind)
    first, *_ = storage.disk(facts(disks=[disk]))
    assert first.result is Result.PROBLEM
    assert kind in first.found


def test_a_disk_without_names_is_a_problem_and_one_that_does_not_count_them_is_not(facts):
    [few] = storage.disk(facts(disks=[Disk("/data", 1 << 40, 1 << 41, free_names=3)]))
    assert (few.result, "df -i" in few.do[0]) == (Result.PROBLEM, True)
    [none] = storage.disk(facts(disks=[Disk("/data", 1 << 40, 1 << 41)]))
    assert none.result is Result.OK
    [roomy] = storage.disk(facts(disks=[ROOMY]))
    assert roomy.result is Result.OK


@pytest.mark.parametrize(
    ("path", "mode", "result"),
    [
        ("/d/bus.sqlite3", 0o600, None),
        ("/d/logs/writer.log", 0o644, None),
        ("/d/bus.sqlite3", 0o640, Result.WARNING),
        ("/d/a b.sqlite3", 0o400, Result.PROBLEM),
    ],
)
def test_modes_of_files(facts, path, mode, result):
    from agentbus.cli.doctor.facts import File

    found = list(storage.files(facts(files=[File(path, 1000, mode)])))
    assert [each.result for each in found] == ([] if result is None else [result])
    assert all("'" in each.do[0] for each in found if " " in path)
