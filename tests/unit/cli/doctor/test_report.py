"""What people and programs are shown."""

from __future__ import annotations

import pytest
from rich.console import Console

from agentbus.cli.doctor.checks import Examined
from agentbus.cli.doctor.findings import Result, of_error, ok, problem, warning
from agentbus.cli.doctor.report import document, is_well, report, worst
from agentbus.errors import RedisMissing, StorageFailed, VersionMismatch

LONG = "chmod 700 /" + "very/" * 30 + "long"
MIXED = [
    Examined("disk", ok("room")),
    Examined("daemon", warning("none runs", "agentbus daemon")),
    Examined("files", problem("open\x1b[2J to\nothers", LONG)),
]


def shown(examined, width=80):
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(report(examined), crop=False)
    return captured.get()


def test_problems_come_first_and_commands_are_whole():
    lines = shown(MIXED).splitlines()
    assert lines[0].startswith("problem  files: open")
    assert lines[1] == f"         do: {LONG}"
    assert lines[2].startswith("warning  daemon: none runs")
    assert lines[4].startswith("ok       disk: room")
    assert lines[-1] == "1 problem, 1 warning."


def test_nothing_of_what_was_found_moves_a_cursor_or_forges_a_line():
    assert "\x1b" not in shown(MIXED)
    assert "\nothers" not in shown(MIXED)
    assert "\\u001b" not in repr(document("1", MIXED))


@pytest.mark.parametrize(
    ("examined", "result", "line"),
    [
        (MIXED, Result.PROBLEM, "1 problem, 1 warning."),
        (MIXED[:2], Result.WARNING, "no problems, 1 warning."),
        (MIXED[:1], Result.OK, "Nothing is wrong."),
    ],
)
def test_the_last_line_sums_up(examined, result, line):
    assert worst(examined) is result
    assert is_well(examined) is (result is not Result.PROBLEM)
    assert shown(examined).splitlines()[-1] == line
    assert document("1", examined)["result"] == result.value


@pytest.mark.parametrize(
    ("error", "found", "do"),
    [
        (
            RedisMissing("none; it needs 7; install one: apt"),
            "none; it needs 7",
            "install one: apt",
        ),
        (StorageFailed("/d cannot be written; run: chmod 700 /d"), None, "chmod 700 /d"),
    ],
)
def test_an_error_ends_with_what_to_do(error, found, do):
    finding = of_error(error)
    assert finding.do == (do,)
    assert finding.found == (found or "/d cannot be written")


def test_advice_that_is_given_replaces_that_of_the_error():
    assert of_error(VersionMismatch("old; do it"), "agentbus stop").do == ("agentbus stop",)
