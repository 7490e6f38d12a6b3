"""`agentbus send`: a person says something."""

from __future__ import annotations

import sys
from typing import Annotated

import msgspec
import typer

from agentbus.cli.options import AsJson, ConfigPath
from agentbus.cli.output import print_json
from agentbus.cli.people import As, person
from agentbus.cli.text import one_line
from agentbus.client.client import Client
from agentbus.config import load
from agentbus.errors import InvalidArgument, NotFound
from agentbus.wire.rpc import SendResult

Channel = Annotated[str, typer.Argument(metavar="CHANNEL", help="Where to.")]
Words = Annotated[
    str | None,
    typer.Argument(metavar="TEXT", help="What to say; - or nothing: what stdin says."),
]
Type = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Instead of `message`.")]
ReplyTo = Annotated[str | None, typer.Option("--reply-to", metavar="ID", help="Answer a message.")]
Create = Annotated[bool, typer.Option("--create", help="Make the channel if there is none.")]


def send(
    channel: Channel,
    text: Words = None,
    name: As = None,
    kind: Type = None,
    reply_to: ReplyTo = None,
    create: Create = False,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Send a message to a channel; in a memory channel, make a memory."""
    content = _content(text)
    more = {"type": kind, "reply_to": reply_to}
    given = {key: value for key, value in more.items() if value is not None}
    with person(load(config), name, "send") as somebody:
        message_id = somebody.client.new_id()

        def say(client: Client) -> SendResult:
            if create:
                client.create_channel(somebody.attachment, channel)
            return client.send(somebody.attachment, channel, message_id, content, **given)

        try:
            sent = somebody.insist(say)
        except NotFound as error:
            if create:
                raise
            raise NotFound(f"{error.message}; with --create it is made") from None
    if as_json:
        print_json(msgspec.to_builtins(sent))
    else:
        typer.echo(f"{one_line(channel)} {sent.seq}: {sent.message_id}")


def _content(text: str | None) -> str:
    if text is not None and text != "-":
        return text
    if text is None and sys.stdin.isatty():
        raise InvalidArgument("nothing to send: give the text, or pipe it in")
    try:
        content = sys.stdin.buffer.read().decode().rstrip("\n")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"stdin is no UTF-8 text (byte {error.start})") from None
    if not content:
        raise InvalidArgument("nothing to send: stdin is empty")
    return content
