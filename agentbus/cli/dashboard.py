"""A snapshot of the bus for a person's eyes: snapshot in, renderable out; pure.

Readable at 80 columns. A name can neither style nor forge a line.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from agentbus.cli.snapshot import Budget, Channel, Process, Session, Snapshot
from agentbus.cli.text import one_line

STATES = {"ready": "bold green", "recovering": "bold yellow", "starting": "bold yellow"}
ALWAYS = {"messages": "stored", "accepted": "accepted", "delivered": "delivered"}
SOMETIMES = ("memories", "evicted", "rejected")
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def dashboard(snapshot: Snapshot) -> RenderableType:
    """Everything, most important first."""
    if snapshot.state == "stopped":
        return Text.assemble("agentbus is ", ("not running", "bold"))
    parts: list[RenderableType] = [_head(snapshot), *_remarks(snapshot)]
    parts += [Text(), _facts(snapshot), Text(), _processes(snapshot.processes)]
    if snapshot.sessions:
        parts += [Text(), _sessions(snapshot.sessions)]
    if snapshot.channels:
        parts += [Text(), _channels(snapshot.channels)]
    return Group(*parts)


def _outer(text: str) -> Text:
    """Text that somebody else has chosen."""
    return Text(one_line(text))


def _head(snapshot: Snapshot) -> Text:
    style = STATES.get(snapshot.state, "bold red")
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


def _facts(snapshot: Snapshot) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("messages", Text(_totals(snapshot.totals)))
    if snapshot.redis is not None:
        redis = snapshot.redis
        health = Text("healthy", "green") if redis.healthy else Text("not healthy", "bold red")
        details = f", {_budget(snapshot.budgets.get('redis'), redis.dataset_bytes)}"
        details += f", {counted(redis.lag_commits, 'commit')} behind"
        grid.add_row(f"{redis.flavour or 'redis'} {redis.version}".strip(), health.append(details))
    if snapshot.sqlite is not None:
        sqlite = snapshot.sqlite
        details = f"{_budget(snapshot.budgets.get('sqlite'), sqlite.logical_bytes)}, "
        details += f"WAL {size(sqlite.wal_bytes)}, synchronous {sqlite.synchronous}"
        grid.add_row("sqlite", Text(details))
        grid.add_row("database", _outer(sqlite.path))
    grid.add_row("settings", _outer(snapshot.config_path))
    return grid


def _totals(totals: dict[str, int]) -> str:
    """What is there and what happened; losses and refusals only where there were any."""
    shown = [f"{totals[key]:,} {name}" for key, name in ALWAYS.items() if key in totals]
    shown += [f"{totals[key]:,} {key}" for key in SOMETIMES if totals.get(key)]
    return ", ".join(shown)


def _budget(budget: Budget | None, used: int) -> str:
    if budget is None or not budget.limit:
        return size(used)
    return f"{size(budget.used)} of {size(budget.limit)} ({budget.percent:.1f} %)"


def _table(*columns: str, numbers: tuple[str, ...] = ()) -> Table:
    """Columns of text, then columns of numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _processes(processes: Iterable[Process]) -> Table:
    table = _table("PROCESS", numbers=("PID", "UP", "RESTARTS", "CPU", "MEMORY"))
    for process in processes:
        cpu = "" if process.cpu_percent is None else f"{process.cpu_percent:.1f} %"
        table.add_row(
            _outer(process.name),
            str(process.pid),
            duration(process.uptime_s),
            Text(str(process.restarts), "yellow" if process.restarts else ""),
            cpu,
            "" if process.rss_bytes is None else size(process.rss_bytes),
        )
    return table


def _sessions(sessions: Iterable[Session]) -> Table:
    texts = ("SESSION", "APPLICATION", "ATTACHED", "CHANNEL")
    table = _table(*texts, numbers=("POSITION", "WAITING"))
    for session in sessions:
        first = [
            _outer(_named(session)),
            _outer(session.application),
            Text("yes", "green") if session.attached else Text("no", "dim"),
        ]
        if not session.subscriptions:
            table.add_row(*first, Text("-", "dim"), "", "")
        for index, subscription in enumerate(session.subscriptions):
            table.add_row(
                *(first if index == 0 else [""] * len(first)),
                _outer(f"#{subscription.channel}"),
                str(subscription.position),
                Text(str(subscription.lag), "bold yellow" if subscription.lag else "dim"),
            )
    return table


def _named(session: Session) -> str:
    hint = f" ({session.repository})" if session.repository else ""
    return f"{session.display_name}{hint}"


def _channels(channels: Iterable[Channel]) -> Table:
    numbers = ("MESSAGES", "OLDEST", "NEWEST", "SUBSCRIBERS")
    table = _table("CHANNEL", "KIND", numbers=numbers)
    for channel in channels:
        table.add_row(
            _outer(f"#{channel.name}"),
            _outer(channel.kind),
            str(channel.messages),
            _position(channel.oldest_seq),
            _position(channel.newest_seq),
            str(channel.subscribers),
        )
    return table


def _position(seq: int | None) -> str:
    return str(seq) if seq else "-"


def size(count: int) -> str:
    """Bytes as people read them: 512 B, 1.5 MiB."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} B" if unit == 0 else f"{value:.1f} {UNITS[unit]}"


def duration(seconds: float) -> str:
    """Seconds in the two largest units that are not 0: 42 s, 3 min 5 s, 2 h 10 min, 5 d 3 h."""
    left = max(0, int(seconds))
    parts: list[str] = []
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


def counted(count: int, noun: str) -> str:
    """A number with its noun: 1 commit, 2 commits."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
