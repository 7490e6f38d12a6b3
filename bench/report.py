"""The results as a Markdown table for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from bench.figures import Figure

HEAD = "| | median | range | target | |\n|---|---|---|---|---|"


class Report(msgspec.Struct, frozen=True):
    """One run of the suite."""

    machine: dict[str, str]
    figures: dict[str, list[Figure]]

    @property
    def met(self) -> bool:
        """Whether no target was missed."""
        return all(row.meets is not False for rows in self.figures.values() for row in rows)


def markdown(report: Report) -> str:
    """Facts, then one table of all figures."""
    return f"{_facts(report.machine)}\n\n{_table(report.figures)}\n"


def _facts(machine: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in machine.items())


def _table(figures: Mapping[str, Sequence[Figure]]) -> str:
    rows = [_row(figure) for part in figures.values() for figure in part]
    return "\n".join([HEAD, *rows])


def _row(figure: Figure) -> str:
    verdict = {True: "met", False: "**missed**", None: ""}[figure.meets]
    middle = f"{number(figure.value)} {figure.unit}"
    extent = f"{number(figure.low)} to {number(figure.high)}"
    return f"| {figure.name} | {middle} | {extent} | {figure.target} | {verdict} |"


def number(value: float) -> str:
    """Three digits that count, no more."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
