"""Structured results of tools, as the bytes of one JSON object; messages are spliced, not decoded.

A ceiling counts these bytes. A message that is larger alone is cut, and says so: its `content` is
shortened, or else emptied and its metadata and references left out too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from agentbus.adapter.inbox import Batch
from agentbus.wire.rpc import HistoryResult, Params

_encode: Final = msgspec.json.encode

FRAME: Final = 128
"""Bytes of a result that are no messages: names of its members, brackets, `more`."""


def received(batch: Batch, ceiling: int, *, more: bool) -> bytes:
    """The result of `recv`."""
    messages = [entry.message for entry in batch.entries if entry.message is not None]
    gaps = _encode([gap for entry in batch.entries for gap in entry.gaps])
    expired = _encode([each for entry in batch.entries for each in entry.expired])
    room = ceiling - FRAME - len(gaps) - len(expired)
    if len(messages) == 1:
        messages = [fit(messages[0], room)]
    parts = [b'{"messages":[', b",".join(messages), b'],"gaps":', gaps, b',"expired":', expired]
    parts += [b',"notices":[],"dropped_notices":0,"more":', _encode(more), b"}"]
    return b"".join(parts)


def told(result: HistoryResult, ceiling: int, *, newest: bool) -> bytes:
    """The result of `history`; what does not fit is left out at the far end, and is `more`."""
    whole = [bytes(message) for message in result.messages]
    kept = _keep(whole[::-1] if newest else whole, ceiling - FRAME)
    messages = kept[::-1] if newest else kept
    more = result.more or len(kept) < len(whole)
    parts = [b'{"messages":[', b",".join(messages), b'],"more":', _encode(more), b"}"]
    return b"".join(parts)


def _keep(messages: Sequence[bytes], room: int) -> list[bytes]:
    kept: list[bytes] = []
    for message in messages:
        room -= len(message) + 1
        if room < 0:
            break
        kept.append(message)
    return kept or [fit(message, room + len(message)) for message in messages[:1]]


def fit(message: bytes, room: int) -> bytes:
    """The envelope, cut where it has more bytes than `room`."""
    if len(message) <= room:
        return message
    envelope: dict[str, Any] = msgspec.json.decode(message)
    content: str = envelope["content"]
    cut = envelope | {"content": "", "content_truncated": True, "content_length": len(content)}
    if len(_encode(cut)) > room:
        for name in ("metadata", "references"):
            if cut.pop(name, None) is not None:
                cut[name + "_omitted"] = True
    cut["content"] = _shorten(content, room - len(_encode(cut)))
    return _encode(cut)


def _shorten(content: str, room: int) -> str:
    """The longest beginning whose JSON string has at most `room` bytes beside its quotes."""
    low, high = 0, min(len(content), max(room, 0))
    while low < high:
        middle = (low + high + 1) // 2
        if len(_encode(content[:middle])) - 2 <= room:
            low = middle
        else:
            high = middle - 1
    return content[:low]


def plain(result: Params, *leave_out: str) -> bytes:
    """A result of the daemon as it is, but for some members."""
    members = {
        name: value
        for name in result.__struct_fields__
        if (value := getattr(result, name)) is not None and name not in leave_out
    }
    return _encode(members)
