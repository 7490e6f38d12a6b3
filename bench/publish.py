"""Puts the figures of a run into the pages: `python -m bench.publish REPORT...`.

A REPORT is what `python -m bench --json REPORT` wrote; of several, a later one has the word. A page
says by `<!-- bench: NAME -->` and `<!-- end -->` where which table belongs (`TABLES`); and it has
the charts that it shows, `images/NAME.svg`, beside it. A table for which no report has a figure
stays; those of all figures and of all targets are of nothing but the reports that are given.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from bench.figures import Figure
from bench.growth import cost_chart
from bench.peers.ours import Ours
from bench.peers.table import ALL
from bench.report import Report, charts, markdown, number
from bench.suite import MEASUREMENTS

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = ("bench/*.md", "docs/**/*.md")
PLACE: Final = re.compile(r"(<!-- bench: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
SHOWN: Final = re.compile(r"\]\(([^)]*images/([\w-]+)\.svg)\)")
HEAD: Final = "| | wanted | reached | range | floor | |\n|---|---|---|---|---|---|"
EMPTY: Final = 2
"""Lines of a table that has only a head."""

GROWS: Final = re.compile(r"growth with (.+), exponent")
FLOORS: Final[dict[str, str]] = {
    "accept, full, one in flight, of the bare loop": "floor of a send, full, of the bare loop",
    "accept, normal, one in flight, of the bare loop": "floor of a send, normal, of the bare loop",
    "end to end, of relay and commit": "floor of end to end, of relay and commit",
    "fan-out to 50, of the bare server": "floor of a fan-out to 50, of the bare server alone",
}
"""What bare processes reach, as many as the bus has, of figures that are compared with one."""


def main(arguments: list[str]) -> int:
    """Exit code; says which files were written."""
    if not arguments or arguments[0].startswith("-"):
        sys.stderr.write(f"{__doc__}\n")
        return 2
    reports = [msgspec.json.decode(Path(name).read_bytes(), type=Report) for name in arguments]
    for path in publish(merged(reports), ROOT):
        sys.stdout.write(f"{path}\n")
    return 0


def merged(reports: Sequence[Report]) -> Report:
    """One of all, in the order of the suite."""
    figures: dict[str, list[Figure]] = {}
    seconds: dict[str, float] = {}
    for report in reports:
        figures |= report.figures
        seconds |= report.seconds
    runs = dict.fromkeys(report.machine.get("run", "") for report in reports)
    ordered = [*(name for name in MEASUREMENTS if name in figures), *figures]
    failed = {name: why for each in reports for name, why in each.failed.items()}
    return Report(
        {**reports[-1].machine, **({"run": "; ".join(filter(None, runs))} if any(runs) else {})},
        {name: figures[name] for name in dict.fromkeys(ordered)},
        seconds,
        {name: why for name, why in failed.items() if name not in figures},
    )


def publish(report: Report, root: Path) -> Iterator[Path]:
    """The files that it wrote. Charts that the run did not measure stay as they are."""
    drawn = charts(report)
    for page in (path for pattern in PAGES for path in sorted(root.glob(pattern))):
        text = page.read_text()
        told = PLACE.sub(lambda found: _told(found, report), text)
        if told != text:
            page.write_text(told)
            yield page
        for path, name in SHOWN.findall(text):
            if name in drawn:
                chart = page.parent / path
                chart.parent.mkdir(parents=True, exist_ok=True)
                chart.write_text(drawn[name])
                yield chart


def _told(found: re.Match[str], report: Report) -> str:
    before, name, after = found.groups()
    table = TABLES[name](report)
    return f"{before}{table}{after}" if table.count("\n") > EMPTY else found[0]


def targets(report: Report) -> str:
    """Every figure that has a target, beside what bare processes reach."""
    found = {row.name: row for row in report.rows()}
    lines = [HEAD]
    for row in report.rows():
        if row.meets is not None:
            floor = found.get(FLOORS.get(row.name, ""))
            lines.append(_row(row, "" if floor is None else _value(floor)))
    return "\n".join(lines) + "\n"


def growth(report: Report) -> str:
    """How fast the cost of a message grows with each kind, and what it was at both ends."""
    rows = report.figures.get("growth", [])
    lines = [
        "| | from | to | µs then | µs then | grows as its power |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        found = GROWS.fullmatch(row.name)
        line = [each for each in rows if found and _is_cost(each, found[1])]
        if found and line:
            first, last = line[0], line[-1]
            ends = [f"{each.point.at:,g}" for each in (first, last) if each.point]
            costs = [number(first.value), number(last.value)]
            extent = f"{row.value:.2f} ({row.low:.2f} to {row.high:.2f})"
            lines.append("| " + " | ".join([found[1], *ends, *costs, extent]) + " |")
    return "\n".join(lines) + "\n"


def _is_cost(row: Figure, kind: str) -> bool:
    point = row.point
    return point is not None and point.line == "bus" and point.chart == cost_chart(kind)


def tuning(report: Report) -> str:
    """A row for each place of the grid, a column for each thing that came of it."""
    columns: dict[str, str] = {}
    found: dict[str, dict[str, Figure]] = {}
    for row in report.figures.get("tuning", []):
        title, _, place = row.name.partition(": ")
        columns[title] = f"{title.removeprefix('tuning, ')}, {row.unit}"
        found.setdefault(place, {})[title] = row
    lines = ["| | " + " | ".join(columns.values()) + " |", "|---|" + "---|" * len(columns)]
    for place, cells in found.items():
        shown = (number(cells[title].value) for title in columns)
        lines.append(f"| {place} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def peers(report: Report) -> str:
    """A row for each figure of the other buses, a column for each of them."""
    return _pivot(report, [bus.name for bus in ALL])


def brokers(report: Report) -> str:
    """The same of the brokers."""
    return _pivot(report, [Ours.name, "NATS JetStream", "Redis Streams"])


def _pivot(report: Report, names: Sequence[str]) -> str:
    """Titles that all but the first name has nothing in are left out."""
    found: dict[str, dict[str, Figure]] = {}
    for row in report.figures.get("peers", []):
        title, _, name = row.name.rpartition(": ")
        if name in names:
            found.setdefault(f"{title}, {row.unit}", {})[name] = row
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for title, cells in found.items():
        if any(name in cells for name in names[1:]):
            shown = (number(cells[name].value) if name in cells else "" for name in names)
            lines.append(f"| {title} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def _row(row: Figure, floor: str) -> str:
    extent = f"{number(row.low)} to {number(row.high)}"
    verdict = "met" if row.meets else "**missed**"
    return f"| {row.name} | {row.target} | {_value(row)} | {extent} | {floor} | {verdict} |"


def _value(row: Figure) -> str:
    return f"{number(row.value)} {row.unit}".strip()


TABLES: Final[dict[str, Callable[[Report], str]]] = {
    "measured": markdown,
    "targets": targets,
    "growth": growth,
    "tuning": tuning,
    "peers": peers,
    "brokers": brokers,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
