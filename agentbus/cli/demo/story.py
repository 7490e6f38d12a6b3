"""How the demo is told: one line for each thing that happens, when it happened, who did it.

Plain where the output is no terminal (or NO_COLOR is set), and then without pauses.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentbus.cli.demo.ledger import Account

COLOURS: Final = ("cyan", "magenta", "yellow")
GUTTER: Final = 9
NAME: Final = 5


class Story:
    """`pace` stretches the pauses between lines: 1 for people, 0 for machines."""

    def __init__(self, console: Console, agents: Iterable[str], pace: float) -> None:
        self._console = console
        self._pace = pace
        self._colours = dict(zip(agents, COLOURS, strict=False))
        self._began = time.monotonic()

    def opening(self, place: str) -> None:
        """What is about to be shown."""
        self._console.print(
            Text.assemble(("agentbus demo", "bold"), ": three agents, one bus, four crashes")
        )
        self._console.print(Text(f"A bus of its own in {place}; yours is not touched.", "dim"))

    def act(self, title: str) -> None:
        """A new part begins."""
        self._console.print()
        self._console.print(Text(title, "bold"))
        self.pause(0.3)

    def does(self, agent: str, what: str) -> None:
        """Something an agent does, other than talking."""
        self._line(agent, Text(what))
        self.pause(0.15)

    def says(self, agent: str, text: str, *, reply: bool = False) -> None:
        """A message that the bus has accepted."""
        arrow = "↳ " if reply else ""
        self._line(agent, Text.assemble((arrow, "dim"), (f"“{text}”", self._colours[agent])))

    def hears(self, heard: Iterable[tuple[str, float]]) -> None:
        """Who received the last message, and how many seconds after it was sent."""
        text = Text.assemble(("heard by ", "dim"))
        for index, (agent, seconds) in enumerate(heard):
            text.append(", " if index else "", "dim")
            text.append(agent, self._colours[agent]).append(f" after {span(seconds)}", "dim")
        self._line("", text)
        self.pause(0.4)

    def crash(self, what: str) -> None:
        """The demo has killed something; no pause, since the bus takes none."""
        self._line("", Text.assemble(("kill -9 ", "bold red"), (what, "red")))

    def good(self, what: str) -> None:
        """The bus has coped."""
        self._line("", Text(what, "green"))
        self.pause(0.2)

    def failed(self, what: str) -> None:
        """The bus has not done what it should."""
        self._line("", Text(what, "bold red"))

    def note(self, what: str) -> None:
        """An explanation."""
        self._line("", Text(what, "dim"))
        self.pause(0.2)

    def balance(self, accounts: Iterable[Account]) -> None:
        """What became of every accepted message."""
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        table.add_column(" " * GUTTER)
        for name in ("SENT", "DUE", "RECEIVED", "LOST", "OUT OF ORDER", "REPEATED"):
            table.add_column(name, justify="right")
        for account in accounts:
            table.add_row(
                Text(f"{account.agent:>{GUTTER + NAME}}", self._colours[account.agent]),
                str(account.sent),
                str(account.due),
                str(account.received),
                Text(str(account.lost), "bold red" if account.lost else "green"),
                Text(str(account.disordered), "bold red" if account.disordered else "green"),
                str(account.again),
            )
        self._console.print(table)

    def verdict(self, *, well: bool) -> None:
        """The last line."""
        took = span(time.monotonic() - self._began)
        self._console.print()
        if well:
            text = Text.assemble(
                ("Nothing was lost.", "bold green"),
                f" Four crashes, {took}; the demo's bus is stopped and removed.",
            )
        else:
            text = Text("Something was lost. That is a fault of agentbus: report it.", "bold red")
        self._console.print(text)

    def pause(self, seconds: float) -> None:
        """Time for a person to read."""
        if self._pace:
            time.sleep(seconds * self._pace)

    def _line(self, agent: str, what: Text) -> None:
        """One entry; where it needs more lines, they are indented and end where their text ends."""
        at = f"{time.monotonic() - self._began:.2f} s"
        colour = self._colours.get(agent, "")
        head = Text.assemble((f"{at:>{GUTTER - 1}}  ", "dim"), (f"{agent:<{NAME}} ", colour))
        for line in what.wrap(self._console, self._console.width - len(head)):
            line.rstrip()
            self._console.print(Text.assemble(head, line))
            head = Text(" " * len(head))


def span(seconds: float) -> str:
    """0.8 ms, 45 ms, 1.24 s: as precise as it is interesting."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    milliseconds = seconds * 1000
    return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:.0f} ms"
