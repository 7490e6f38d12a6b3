"""A snapshot of the bus for a person's eyes: snapshot in, renderable out; pure.

Readable at 80 columns and without colour. A name can neither style nor forge a line.

figures   numbers and small pictures
tables    sessions, channels and processes
view      what a person has chosen to see
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from agentbus.cli.dashboard.figures import bar, counted, duration, size, sparkline
from agentbus.cli.dashboard.tables import Row, outer, rows, table
from agentbus.cli.dashboard.view import Section, View
from agentbus.cli.snapshot import Budget, Index, Latency, Snapshot
from agentbus.cli.text import one_line

STATES: Final = {"ready": "bold green", "recovering": "bold yellow", "starting": "bold yellow"}
SOMETIMES: Final = ("memories", "evicted", "rejected")
SPARK: Final = 20
BAR: Final = 12
FULL_PERCENT, NEARLY_PERCENT = 95.0, 80.0
MOST_REMARKS: Final = 4
"""Reasons and warnings on a screen that has room for more than these."""


def dashboard(snapshot: Snapshot, now: datetime, *, plain: bool = False) -> RenderableType:
    """Everything, most important first; `plain`: with ASCII alone."""
    if snapshot.state == "stopped":
        return Group(_stopped(), *_remarks(snapshot))
    if not snapshot.version:
        return Group(_head(snapshot), *_remarks(snapshot))
    view = View()
    parts: list[RenderableType] = [_head(snapshot), *_remarks(snapshot), Text()]
    parts += [_facts(snapshot, plain=plain), _files(snapshot)]
    for section in (Section.PROCESSES, Section.SESSIONS, Section.CHANNELS):
        found = rows(section, snapshot, view, now, plain=plain)
        if found or section is Section.PROCESSES:
            parts += [Text(), table(section, found)]
    return Group(*parts)


def screen(
    snapshot: Snapshot, view: View, now: datetime, height: int, *, plain: bool = False
) -> RenderableType:
    """As much as fits a terminal of so many lines, and which keys there are."""
    remarks = [*_remarks(snapshot)]
    if len(remarks) > MOST_REMARKS:
        more = len(remarks) - MOST_REMARKS + 1
        remarks = [*remarks[: MOST_REMARKS - 1], Text(f"  and {more} more", "yellow")]
    head = _stopped() if snapshot.state == "stopped" else _head(snapshot)
    facts = [_facts(snapshot, plain=plain)] if snapshot.version else []
    used = 1 + len(remarks) + sum(grid.row_count for grid in facts) + 1
    body = _sections(snapshot, view, now, max(2, height - used), plain=plain)
    return Group(head, *remarks, *facts, *body, _keys(view))


def _stopped() -> Text:
    return Text.assemble("agentbus is ", ("not running", "bold"))


def _head(snapshot: Snapshot) -> Text:
    style = STATES.get(snapshot.state, "bold red")
    if not snapshot.version:  # nobody has answered
        return Text.assemble(("agentbus ", "bold"), "is ", (snapshot.state, style))
    return Text.assemble(
        ("agentbus ", "bold"),
        f"{snapshot.version} is ",
        (snapshot.state, style),
        f", up {duration(snapshot.uptime_s)}",
    )


def _remarks(snapshot: Snapshot) -> Iterable[Text]:
    """Why it is not ready, and what else a person should look at."""
    for reason in snapshot.reasons:
        yield Text(f"  because: {one_line(reason)}", "yellow")
    for warning in snapshot.warnings:
        yield Text(f"  warning: {one_line(warning)}", "yellow")


# ---- facts


def _facts(snapshot: Snapshot, *, plain: bool) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True, min_width=9)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    rates, latency = snapshot.rates, snapshot.latency_ms
    for name, rate, recent, kind in (
        ("accepted", rates.accepted_per_s, rates.accepted_recent, "accept"),
        ("delivered", rates.delivered_per_s, rates.delivered_recent, "visible"),
    ):
        grid.add_row(name, _traffic(rate, recent, kind, latency.get(kind), plain=plain))
    grid.add_row("stored", Text(_totals(snapshot.totals)))
    grid.add_row(_server(snapshot), _redis(snapshot, plain=plain))
    if snapshot.index is not None:
        grid.add_row("index", _index(snapshot.index))
    grid.add_row("sqlite", _sqlite(snapshot, plain=plain))
    return grid


def _files(snapshot: Snapshot) -> Table:
    """Names that a person may want to copy, so they are never cut."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True, min_width=9)
    grid.add_column(overflow="fold")
    grid.add_row("database", outer(snapshot.sqlite.path if snapshot.sqlite else "not known"))
    grid.add_row("settings", outer(snapshot.config_path))
    return grid


def _traffic(
    rate: float, recent: Sequence[float], kind: str, latency: Latency | None, *, plain: bool
) -> Text:
    spark = sparkline(recent, SPARK, plain=plain)
    line = Text.assemble(f"{rate:>6,.1f}/s ", (f"{spark:<{SPARK}}", "cyan"))
    if latency is not None and latency.p50 is not None and latency.p99 is not None:
        line.append(f"  {kind} {latency.p50:.1f} ms, p99 {latency.p99:.1f} ms")
        line.append(f" {sparkline(latency.mean_recent, SPARK // 2, plain=plain)}", "magenta")
    return line


def _totals(totals: dict[str, int]) -> str:
    """What is there; losses and refusals only where there were any."""
    shown = [f"{totals.get('messages', 0):,} messages"]
    shown += [f"{totals[key]:,} {key}" for key in SOMETIMES if totals.get(key)]
    return ", ".join(shown)


def _server(snapshot: Snapshot) -> Text:
    redis = snapshot.redis
    return Text("redis") if redis is None else outer(redis.flavour or "redis")


def _redis(snapshot: Snapshot, *, plain: bool) -> Text:
    redis = snapshot.redis
    if redis is None:
        return Text("not known")
    line = _budget(snapshot.budgets.get("redis"), redis.dataset_bytes, plain=plain)
    health = ("healthy", "green") if redis.healthy else ("not healthy", "bold red")
    line.append(", ").append(*health)
    line.append(f", {counted(redis.lag_commits, 'commit')} behind")
    return line


def _index(index: Index) -> Text:
    return Text(f"{index.documents:,} texts, {counted(index.lag_commits, 'commit')} behind")


def _sqlite(snapshot: Snapshot, *, plain: bool) -> Text:
    sqlite = snapshot.sqlite
    if sqlite is None:
        return Text("not known")
    line = _budget(snapshot.budgets.get("sqlite"), sqlite.logical_bytes, plain=plain)
    return line.append(f", WAL {size(sqlite.wal_bytes)}, synchronous {sqlite.synchronous}")


def _budget(budget: Budget | None, used: int, *, plain: bool) -> Text:
    if budget is None or not budget.limit:
        return Text(size(used))
    percent = budget.percent
    style = "red" if percent >= FULL_PERCENT else "yellow" if percent >= NEARLY_PERCENT else "green"
    line = Text(bar(percent, BAR, plain=plain), style)
    return line.append(f" {percent:.1f} % of {size(budget.limit)}", "default")


# ---- sections


def _sections(
    snapshot: Snapshot, view: View, now: datetime, room: int, *, plain: bool
) -> Iterable[RenderableType]:
    """All of them where they fit, else the one with the focus alone."""
    found = {each: rows(each, snapshot, view, now, plain=plain) for each in Section}
    together = sum(len(lines) + 2 for lines in found.values())
    if together <= room:
        for section, lines in found.items():
            yield _title(found, view, section)
            yield table(section, lines)
        yield from [Text()] * (room - together)
        return
    yield _tabs(found, view)
    lines = found[view.focus]
    page = room - 2
    view.scroll = min(view.scroll, max(0, len(lines) - page))
    part = lines[view.scroll : view.scroll + page]
    yield table(view.focus, part)
    yield from [Text()] * (page - len(part))


def _title(found: dict[Section, list[Row]], view: View, section: Section) -> Text:
    focused = section is view.focus
    text = f"{'> ' if focused else '  '}{section.value}, {_count(found[section])}"
    return Text(text, "bold underline" if focused else "dim")


def _tabs(found: dict[Section, list[Row]], view: View) -> Text:
    line = Text()
    for section, lines in found.items():
        focused = section is view.focus
        mark = "> " if focused else "  "
        line.append(
            f"{mark}{section.value} {_count(lines)}", "bold underline" if focused else "dim"
        )
        line.append("   ")
    return line


def _count(lines: Sequence[Row]) -> int:
    """How many there are; a further line of the same one begins empty."""
    return sum(1 for line in lines if line[0])


def _keys(view: View) -> Text:
    if view.typing:
        return Text.assemble(("filter: ", "bold"), view.filter, ("_", "blink"))
    shown = [f"s sort ({view.sort(view.focus)})", "tab section", "/ filter", "arrows scroll"]
    if view.filter:
        shown.append(f"esc all (not only '{one_line(view.filter)}')")
    return Text("q quit   " + "   ".join(shown), "dim")
