"""`status --watch`: the dashboard on a terminal's other screen, again and again in its place."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Console
from rich.live import Live

from agentbus.cli.dashboard import screen
from agentbus.cli.dashboard.view import View
from agentbus.cli.keys import Keys
from agentbus.cli.people import interruptible
from agentbus.cli.snapshot import Snapshot, read
from agentbus.runtime.clock import SystemClock

REFRESH_SECONDS: Final = 1.0


def watch(look: Callable[[], dict[str, Any]]) -> None:
    """Shows what `look` gives until the person ends it. Keys are heeded at once."""
    console = Console(highlight=False)
    clock = SystemClock()
    view = View()
    with (
        interruptible(),
        Keys() as keys,
        Live(console=console, screen=True, auto_refresh=False) as live,
    ):
        snapshot, due = read(look()), clock.now().monotonic + REFRESH_SECONDS
        while not view.ended:
            live.update(_picture(console, snapshot, view, clock), refresh=True)
            for key in keys.wait(due - clock.now().monotonic):
                view.press(key)
            if clock.now().monotonic >= due:
                snapshot, due = read(look()), clock.now().monotonic + REFRESH_SECONDS


def _picture(console: Console, snapshot: Snapshot, view: View, clock: SystemClock) -> Any:
    now = datetime.fromtimestamp(clock.now().wall, UTC)
    return screen(snapshot, view, now, console.size.height, plain=is_plain(console))


def is_plain(console: Console) -> bool:
    """Whether the terminal has ASCII alone."""
    return not console.encoding.lower().startswith("utf")
