"""Messages as people read chat: items in, lines out; pure.

A line of a message that is not its first is indented to where texts begin, so that no text can
imitate the head of another message; nor can it move the cursor or colour anything.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime
from typing import Final

from rich.text import Text

from agentbus.cli.text import one_line
from agentbus.client.tailing import Changed, Item, Remark
from agentbus.digest import digest
from agentbus.model.message import DEFAULT_TYPE, Message
from agentbus.wire.rpc import Gap

COLOURS: Final = ("cyan", "green", "magenta", "yellow", "blue", "bright_red", "bright_cyan")
GUTTER: Final = " " * 9
"""As wide as a time and a blank."""

REMEMBERED: Final = 2_000
"""Messages that answers are shown with a few words of."""

EXCERPT: Final = 48


class Chat:
    """Renders one item after the other; knows the day, and what was said lately."""

    def __init__(self) -> None:
        self._day = ""
        self._said: OrderedDict[str, str] = OrderedDict()

    def lines(self, item: Item) -> list[Text]:
        """What to print for it."""
        match item:
            case Message():
                return [*self._new_day(item), *self._message(item)]
            case Gap():
                return [_remark(f"{item.lost} messages of {one_line(item.channel)} were removed")]
            case Changed(channel, memory, message):
                if message is None:
                    return [_remark(f"{one_line(channel)}: memory {one_line(memory)} was deleted")]
                return [*self._new_day(message), *self._message(message)]
            case Remark(text):
                return [_remark(one_line(text))]

    def _new_day(self, message: Message) -> list[Text]:
        day = local(message.sent_at).strftime("%A, %d %B %Y")
        if day == self._day:
            return []
        self._day = day
        return [Text(f"--- {day} ---", "dim")]

    def _message(self, message: Message) -> list[Text]:
        body = [_harmless(line) for line in message.content.split("\n")]
        lines = [_head(message)]
        if message.reply_to is not None:
            about = self._said.get(message.reply_to, one_line(message.reply_to))
            lines.append(Text(f"{GUTTER}> {about}", "dim"))
        else:
            lines[0].append(f" {body.pop(0)}")
        lines += [Text(GUTTER + line) for line in body]
        self._remember(message)
        return lines

    def _remember(self, message: Message) -> None:
        words = one_line(message.content)
        cut = words if len(words) <= EXCERPT else words[: EXCERPT - 3] + "..."
        self._said[message.message_id] = f"{one_line(message.sender)}: {cut}"
        if len(self._said) > REMEMBERED:
            self._said.popitem(last=False)


def _head(message: Message) -> Text:
    """Time, channel, who, and what kind where it is not the usual one."""
    clock = local(message.sent_at).strftime("%H:%M:%S")
    sender = one_line(message.sender)
    line = Text.assemble(
        (f"{clock} ", "dim"),
        (f"{one_line(message.channel)}  ", "dim"),
        (sender, f"bold {colour(sender)}"),
    )
    kind = [] if message.type == DEFAULT_TYPE else [one_line(message.type)]
    if message.revision is not None:
        kind.append("memory" if message.revision == 1 else f"memory, revision {message.revision}")
    if kind:
        line.append(f" ({', '.join(kind)})", "dim")
    return line.append(":")


def colour(sender: str) -> str:
    """Always the same for a name."""
    return COLOURS[digest(sender.encode(), 1)[0] % len(COLOURS)]


def local(sent_at: str) -> datetime:
    """In the time zone of this machine."""
    return datetime.fromisoformat(sent_at).astimezone()


def _remark(text: str) -> Text:
    return Text(f"{GUTTER}-- {text}", "yellow")


def _harmless(line: str) -> str:
    shown = (each if each.isprintable() else "    " if each == "\t" else "\ufffd" for each in line)
    return "".join(shown)
