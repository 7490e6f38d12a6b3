"""Asking what a channel's stream holds, without reading it."""

from __future__ import annotations

from typing import Final

import msgspec

from agentbus.errors import Unavailable
from agentbus.mirror import keys
from agentbus.mirror.read import entry, sent_at
from agentbus.mirror.resp import Command, Refused, Reply
from agentbus.model.ids import ChannelId, Seq

COMMANDS: Final = 4
"""Commands, and so replies, of one survey."""


class Survey(msgspec.Struct, frozen=True):
    """`count` entries from `oldest` to `newest` (0 and 0 where there are none), and how many
    `contents` of memories; `newest_at` is when the newest was sent, where its entry tells."""

    count: int
    oldest: Seq
    newest: Seq
    contents: int
    newest_at: str


def commands(channel: ChannelId) -> list[Command]:
    """What `read` wants the replies to."""
    key = keys.stream(channel)
    return [
        (b"XLEN", key),
        (b"HLEN", keys.contents(channel)),
        (b"XRANGE", key, b"-", b"+", b"COUNT", b"1"),
        (b"XREVRANGE", key, b"+", b"-", b"COUNT", b"1"),
    ]


def read(replies: list[Reply]) -> Survey:
    """What there is. Raises Unavailable where Redis refused to say."""
    for reply in replies:
        if isinstance(reply, Refused):
            raise Unavailable(f"Redis refused a read: {reply.brief}")
    count, contents, oldest, newest = replies
    if not count:
        return Survey(0, Seq(0), Seq(0), contents, "")
    identity, fields = newest[0]
    dated = "" if keys.MEMORY in fields else sent_at(entry(identity, fields).envelope)
    first, last = keys.position(oldest[0][0]), keys.position(identity)
    return Survey(count, first, last, contents, dated)
