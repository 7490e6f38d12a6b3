"""`agentbus search`: what was said on the bus."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from agentbus.cli.chat import Chat
from agentbus.cli.options import AsJson, ConfigPath
from agentbus.cli.output import print_json
from agentbus.cli.people import As, person
from agentbus.config import load
from agentbus.model.message import Message
from agentbus.wire.rpc import SearchResult


class Order(StrEnum):
    """Which results come first."""

    NEWEST = "newest"
    RELEVANCE = "relevance"


Words = Annotated[str, typer.Argument(metavar="QUERY", help="Words, all of them; `word*` begins.")]
Channels = Annotated[
    list[str] | None,
    typer.Option("--channel", metavar="C", help="Only there; once for each."),
]
Sender = Annotated[
    str | None, typer.Option("--sender", metavar="NAME", help="Only of this one, or this agent.")
]
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help="RFC 3339.")]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="RFC 3339.")]
OrderBy = Annotated[Order, typer.Option("--order", help="Which come first.")]
Limit = Annotated[int, typer.Option("-n", "--limit", min=1, max=1000, help="Results at most.")]


def search(
    query: Words,
    channel: Channels = None,
    sender: Sender = None,
    since: Since = None,
    until: Until = None,
    order: OrderBy = Order.NEWEST,
    limit: Limit = 20,
    name: As = None,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Search all messages and memories. Exit code 0 also where nothing is found."""
    wishes = {
        "channels": channel or None,
        "sender": sender,
        "since": since,
        "until": until,
        "order": order.value,
        "limit": limit,
    }
    with person(load(config), name, "search") as somebody:
        found = somebody.insist(lambda client: client.search(somebody.attachment, query, **wishes))
    if as_json:
        print_json(_document(found))
    else:
        _show(found, newest=order is Order.NEWEST)


def _show(found: SearchResult, *, newest: bool) -> None:
    """Where the newest come first they are shown last, above the prompt, as `tail` shows them."""
    chat, console = Chat(), Console(highlight=False, soft_wrap=True)
    results = found.results[::-1] if newest else found.results
    for item in results:
        for line in chat.lines(msgspec.json.decode(item.message, type=Message)):
            console.print(line)
    if not results:
        typer.echo("nothing found", err=True)
    elif found.next_cursor is not None:
        typer.echo("there are more; -n shows more of them", err=True)


def _document(found: SearchResult) -> dict[str, object]:
    results = [{"message": item.message, "snippet": item.snippet} for item in found.results]
    return {"results": results, "more": found.next_cursor is not None}
