"""The tables of the dashboard: which lines they have, in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from rich.table import Table
from rich.text import Text

from agentbus.cli.dashboard.figures import age, duration, size
from agentbus.cli.dashboard.view import Section, View
from agentbus.cli.snapshot import Channel, Process, Session, Snapshot, Subscription
from agentbus.cli.text import one_line

Row = list[Text]

ATTACHED, AWAY = "●", "○"
PLAIN_ATTACHED, PLAIN_AWAY = "*", "-"

HEADS: Final = {
    Section.SESSIONS: (("", "SESSION", "CHANNEL"), ("POSITION", "WAITING", "OLDEST", "HELD")),
    Section.CHANNELS: (("CHANNEL", "KIND"), ("MESSAGES", "OLDEST", "NEWEST", "SUBSCRIBERS")),
    Section.PROCESSES: (("PROCESS",), ("PID", "UP", "RESTARTS", "CPU", "MEMORY")),
}
"""Columns of text, and columns of numbers."""


def outer(text: str) -> Text:
    """Text that somebody else has chosen."""
    return Text(one_line(text))


def table(section: Section, rows: Iterable[Row]) -> Table:
    """These rows under the section's heads, none of them on two lines."""
    texts, numbers = HEADS[section]
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name in texts:
        grid.add_column(_one_line(Text(name)))
    for name in numbers:
        grid.add_column(name, justify="right", no_wrap=True, min_width=len(name))
    for row in rows:
        cells = [_one_line(cell) for cell in row[: len(texts)]]
        grid.add_row(*cells, *row[len(texts) :])
    return grid


def _one_line(text: Text) -> Text:
    """Cut where there is no room. Its column may wrap, and so gives way to those that may not."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def rows(
    section: Section, snapshot: Snapshot, view: View, now: datetime, *, plain: bool
) -> list[Row]:
    """All lines of a section that the filter lets through."""
    if section is Section.PROCESSES:
        return [_process(each) for each in _processes(snapshot.processes, view)]
    if section is Section.CHANNELS:
        return [_channel(each) for each in _channels(snapshot.channels, view)]
    sessions = _sessions(snapshot.sessions, view)
    return [row for each in sessions for row in _session(each, now, plain=plain)]


# ---- processes


def _processes(processes: Sequence[Process], view: View) -> list[Process]:
    found = [each for each in processes if view.wants(each.name)]
    match view.sort(Section.PROCESSES):
        case "cpu":
            return sorted(found, key=lambda each: -(each.cpu_percent or 0))
        case "memory":
            return sorted(found, key=lambda each: -(each.rss_bytes or 0))
        case _:
            return found


def _process(process: Process) -> Row:
    cpu = "" if process.cpu_percent is None else f"{process.cpu_percent:.1f} %"
    return [
        outer(process.name),
        Text(str(process.pid)),
        Text(duration(process.uptime_s)),
        Text(str(process.restarts), "yellow" if process.restarts else ""),
        Text(cpu),
        Text("" if process.rss_bytes is None else size(process.rss_bytes)),
    ]


# ---- sessions


def _sessions(sessions: Sequence[Session], view: View) -> list[Session]:
    found = [
        each
        for each in sessions
        if view.wants(
            each.display_name,
            each.application,
            each.repository or "",
            *(subscription.channel for subscription in each.subscriptions),
        )
    ]
    match view.sort(Section.SESSIONS):
        case "name":
            return sorted(found, key=lambda each: each.display_name.casefold())
        case "held":
            return sorted(found, key=lambda each: -each.window.messages)
        case _:
            return sorted(found, key=lambda each: (-each.waiting, not each.attached))


def _session(session: Session, now: datetime, *, plain: bool) -> Iterable[Row]:
    marks = (PLAIN_ATTACHED, PLAIN_AWAY) if plain else (ATTACHED, AWAY)
    mark = Text(marks[0], "green") if session.attached else Text(marks[1], "dim")
    held = Text(str(session.window.messages) if session.attached else "")
    name = outer(_named(session)).append(f"  {one_line(session.application)}", "dim")
    first = [mark, name]
    if not session.subscriptions:
        yield [*first, Text("-", "dim"), Text(), Text(), Text(), held]
    for index, subscription in enumerate(session.subscriptions):
        head = first if index == 0 else [Text(), Text()]
        yield [*head, *_subscription(subscription, now), held if index == 0 else Text()]


def _named(session: Session) -> str:
    hint = f" ({session.repository})" if session.repository else ""
    return f"{session.display_name}{hint}"


def _subscription(subscription: Subscription, now: datetime) -> Row:
    lag = subscription.lag
    return [
        outer(f"#{subscription.channel}"),
        Text(str(subscription.position)),
        Text(str(lag), "bold yellow" if lag else "dim"),
        Text(age(subscription.oldest_undelivered_at, now) if lag else ""),
    ]


# ---- channels


def _channels(channels: Sequence[Channel], view: View) -> list[Channel]:
    found = [each for each in channels if view.wants(each.name, each.kind)]
    match view.sort(Section.CHANNELS):
        case "messages":
            return sorted(found, key=lambda each: -each.messages)
        case "subscribers":
            return sorted(found, key=lambda each: -each.subscribers)
        case _:
            return sorted(found, key=lambda each: each.name.casefold())


def _channel(channel: Channel) -> Row:
    return [
        outer(f"#{channel.name}"),
        outer(channel.kind),
        Text(str(channel.messages)),
        _position(channel.oldest_seq),
        _position(channel.newest_seq),
        Text(str(channel.subscribers)),
    ]


def _position(seq: int | None) -> Text:
    return Text(str(seq) if seq else "-")
