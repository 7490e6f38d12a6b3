"""What was found, for people and for programs; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from agentbus.cli.doctor.checks import Examined
from agentbus.cli.doctor.findings import Result
from agentbus.cli.text import one_line

ORDER: Final = (Result.PROBLEM, Result.WARNING, Result.OK)
INDENT: Final = 9
STYLES: Final = {Result.PROBLEM: "bold red", Result.WARNING: "yellow", Result.OK: "green"}


def worst(examined: Sequence[Examined]) -> Result:
    """The worst result; without any all is well."""
    results = {each.finding.result for each in examined}
    return next((result for result in ORDER if result in results), Result.OK)


def is_well(examined: Sequence[Examined]) -> bool:
    """Whether there is no problem; warnings do not count."""
    return worst(examined) is not Result.PROBLEM


def document(version: str, examined: Sequence[Examined]) -> dict[str, Any]:
    """What `doctor --json` prints."""
    return {
        "version": version,
        "result": worst(examined).value,
        "problems": _count(examined, Result.PROBLEM),
        "warnings": _count(examined, Result.WARNING),
        "checks": [
            {
                "check": each.check,
                "result": each.finding.result.value,
                "found": one_line(each.finding.found),
                "do": [one_line(line) for line in each.finding.do],
            }
            for each in examined
        ],
    }


def report(examined: Sequence[Examined]) -> RenderableType:
    """Problems first; what is well last, and briefly. Show it without cropping."""
    parts: list[RenderableType] = []
    for result in ORDER:
        for each in examined:
            if each.finding.result is result:
                parts += [_found(each), *map(_do, each.finding.do)]
    return Group(*parts, Text(), _summary(examined))


def _found(each: Examined) -> RenderableType:
    result = each.finding.result
    quiet = result is Result.OK
    line = Text.assemble(
        (each.check, "dim" if quiet else "bold"),
        (f": {one_line(each.finding.found)}", "dim" if quiet else ""),
    )
    table = Table.grid()
    table.add_column(width=INDENT)
    table.add_column(overflow="fold")
    table.add_row(Text(result.value, STYLES[result]), line)
    return table


def _do(line: str) -> Text:
    """Never broken: people copy it."""
    text = Text.assemble(" " * INDENT, ("do: ", "dim"), (one_line(line), "cyan"))
    text.no_wrap, text.overflow = True, "ignore"
    return text


def _summary(examined: Sequence[Examined]) -> Text:
    problems, warnings = (_count(examined, each) for each in (Result.PROBLEM, Result.WARNING))
    if not problems and not warnings:
        return Text("Nothing is wrong.", STYLES[Result.OK])
    counted = f"{_counted(problems, 'problem')}, {_counted(warnings, 'warning')}."
    return Text(counted, STYLES[worst(examined)])


def _count(examined: Sequence[Examined], result: Result) -> int:
    return sum(each.finding.result is result for each in examined)


def _counted(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"
