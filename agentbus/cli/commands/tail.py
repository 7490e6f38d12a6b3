"""`agentbus tail`: what is said on the bus, as it is said."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from agentbus.cli.chat import Chat
from agentbus.cli.options import ConfigPath
from agentbus.cli.people import As, interruptible, person
from agentbus.client.tailing import Changed, Item, Remark, Tail
from agentbus.config import load
from agentbus.model.message import Message
from agentbus.wire.rpc import Gap

Channels = Annotated[
    list[str] | None,
    typer.Argument(metavar="CHANNEL", help="These; all, also new ones, where none is named."),
]
Lines = Annotated[
    int, typer.Option("-n", "--lines", min=0, max=1000, help="Messages from before to begin with.")
]
NoFollow = Annotated[bool, typer.Option("--no-follow", help="End after those.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document a line instead of text.")]


def tail(
    channel: Channels = None,
    lines: Lines = 20,
    no_follow: NoFollow = False,
    name: As = None,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Show messages as they are sent, until Ctrl-C. Nobody else's cursor moves."""
    with person(load(config), name, "tail") as somebody:
        items = Tail(somebody, channel or [])
        show = _print_json if as_json else _Printer().show
        with interruptible():
            show(items.begin(lines))
            if not no_follow:
                for item in items.follow():
                    show([item])
        items.end()


class _Printer:
    def __init__(self) -> None:
        self._chat = Chat()
        self._console = Console(highlight=False, soft_wrap=True)

    def show(self, items: Iterable[Item]) -> None:
        for item in items:
            for line in self._chat.lines(item):
                self._console.print(line)


def _print_json(items: Iterable[Item]) -> None:
    for item in items:
        typer.echo(msgspec.json.encode(_document(item)))


def _document(item: Item) -> object:
    match item:
        case Message():
            return item
        case Gap():
            return {"gap": item}
        case Changed(channel, memory, message):
            if message is not None:
                return message
            return {"deleted": {"channel": channel, "memory_id": memory}}
        case Remark(text):
            return {"remark": text}
