"""The results as Markdown tables for people, as JSON for programs, and as charts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from bench import plot
from bench.figures import Chart, Figure, Point

HEAD = "| | median | range | target | |\n|---|---|---|---|---|"


class Report(msgspec.Struct, frozen=True):
    """One run of the suite."""

    machine: dict[str, str]
    figures: dict[str, list[Figure]]
    seconds: dict[str, float] = {}
    """That each measurement took."""

    failed: dict[str, str] = {}
    """Measurements that came to no figures, and why."""

    @property
    def met(self) -> bool:
        """Whether all came to figures, and no target was missed."""
        return not self.failed and all(row.meets is not False for row in self.rows())

    def rows(self) -> list[Figure]:
        """Of all measurements."""
        return [row for rows in self.figures.values() for row in rows]


def markdown(report: Report) -> str:
    """Facts, one table of all figures, then a table for each chart."""
    parts = [_facts(report.machine), _table(report), *_varied(report.rows())]
    return "\n\n".join(parts) + "\n"


def draw(report: Report, directory: Path) -> list[Path]:
    """Writes every chart; which files they are."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in charts(report).items():
        path = directory / f"{name}.svg"
        path.write_text(text)
        written.append(path)
    return written


def charts(report: Report) -> dict[str, str]:
    """Every chart, and the overview where there is a target, by the name of its file."""
    rows = report.rows()
    drawn = {file_name(name): text for name, text in plot.charts(rows).items()}
    if any(row.meets is not None for row in rows):
        drawn["overview"] = plot.overview(rows)
    return drawn


def file_name(chart: str) -> str:
    """Letters, digits and dashes alone."""
    return re.sub(r"[^a-z0-9]+", "-", chart.lower()).strip("-")


def _facts(machine: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in machine.items())


def _table(report: Report) -> str:
    """Each measurement with its time, then its figures, but those that a chart has."""
    lines = [HEAD]
    for name, figures in report.figures.items():
        lines.append(_heading(name, report))
        lines += [_row(row) for row in figures if row.point is None or row.meets is not None]
    lines += [f"{_heading(name, report)} **failed**: {why} |" for name, why in _failed(report)]
    return "\n".join(lines)


def _heading(name: str, report: Report) -> str:
    seconds = report.seconds.get(name)
    took = "" if seconds is None else f", took {duration(seconds)}"
    return f"| **`{name}`**{took} | | | |" + ("" if name in report.failed else " |")


def _failed(report: Report) -> Iterator[tuple[str, str]]:
    for name, why in report.failed.items():
        yield name, why.replace("|", "/").replace("\n", " ")


def duration(seconds: float) -> str:
    """In seconds, or in minutes where it is some of them."""
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def _row(figure: Figure) -> str:
    verdict = {True: "met", False: "**missed**", None: ""}[figure.meets]
    middle = f"{number(figure.value)} {figure.unit}"
    extent = f"{number(figure.low)} to {number(figure.high)}"
    return f"| {figure.name} | {middle} | {extent} | {figure.target} | {verdict} |"


def _varied(rows: Sequence[Figure]) -> Iterator[str]:
    """For each chart its medians: a row for each line, a column for each place."""
    found: dict[Chart, list[tuple[Point, Figure]]] = {}
    for row in rows:
        if row.point is not None:
            found.setdefault(row.point.chart, []).append((row.point, row))
    for chart, members in found.items():
        ats = sorted({point.at for point, _ in members})
        head = f"| {chart.name}, {members[0][1].unit}, by {chart.across} |"
        yield "\n".join(
            [
                head + "".join(f" {at:,g} |" for at in ats),
                "|---|" + "---|" * len(ats),
                *(_line(name, dict(line), ats) for name, line in plot.lines(members).items()),
            ]
        )


def _line(name: str, line: Mapping[float, Figure], ats: Sequence[float]) -> str:
    cells = (number(line[at].value) if at in line else "" for at in ats)
    return f"| {name} |" + "".join(f" {cell} |" for cell in cells)


def number(value: float) -> str:
    """Three digits that count, no more."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
