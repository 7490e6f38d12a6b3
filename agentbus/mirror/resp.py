"""Commands and replies of Redis as plain data, and their bytes (RESP2, by hiredis).

redis-py would do this too. Measured here: importing `redis.asyncio` takes 75 ms more than hiredis
in every child that is forked, and a command costs several times what packing it costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, cast

import hiredis
import msgspec

Command = tuple[bytes, ...]
"""A command's name and arguments."""

Reply = Any
"""bytes, int, None, a list of replies, or `Refused`."""


_NOTHING: Final = object()
_pack_command = cast("Callable[[Command], bytes]", hiredis.pack_command)


class Refused(msgspec.Struct, frozen=True):
    """An error reply, wherever it stands in a reply; `text` begins with its code."""

    text: str

    @property
    def brief(self) -> str:
        """The text for people and logs: without the arguments that some refusals quote."""
        return self.text.partition(", with args")[0][:200]


def pack(commands: Iterable[Command]) -> bytes:
    """The bytes of these commands, one after the other."""
    return b"".join(map(_pack_command, commands))


class ReplyDecoder:
    """Turns the byte stream of one connection into replies; keep one per connection."""

    def __init__(self) -> None:
        # hiredis calls whatever it is given with the text and keeps what it gets.
        refused = cast("Callable[[str], Exception]", Refused)
        self._reader = hiredis.Reader(replyError=refused, notEnoughData=_NOTHING)

    def feed(self, data: bytes) -> list[Reply]:
        """The replies completed by `data`. Raises `hiredis.ProtocolError` on anything else."""
        reader = self._reader
        reader.feed(data)
        replies = []
        while (reply := reader.gets()) is not _NOTHING:
            replies.append(reply)
        return replies
