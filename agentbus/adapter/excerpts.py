"""Messages that are shown in part, and say so: cut to the room there is, or read piece by piece.

Offsets and lengths count characters of the content (code points). Where even the rest of an
envelope is too large, its metadata and references are left out.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

_encode: Final = msgspec.json.encode


def fit(message: bytes, room: int) -> bytes:
    """The envelope, cut where it has more bytes than `room`."""
    if len(message) <= room:
        return message
    envelope: dict[str, Any] = msgspec.json.decode(message)
    content: str = envelope["content"]
    cut = envelope | {"content": "", "content_truncated": True, "content_length": len(content)}
    _slim(cut, room)
    cut["content"] = _shorten(content, room - len(_encode(cut)))
    return _encode(cut)


def piece(message: bytes, offset: int, room: int) -> bytes:
    """The envelope with its content from `offset` on, as much as there is room for; at least a
    character, so that who goes on at `next_offset` gets to the end."""
    envelope: dict[str, Any] = msgspec.json.decode(message)
    content: str = envelope["content"]
    rest = content[offset:]
    shown = envelope | {"content": rest, "content_length": len(content)}
    if len(_encode(shown)) <= room:
        return _encode(shown)
    shown |= {"content": "", "next_offset": len(content)}
    _slim(shown, room)
    part = _shorten(rest, room - len(_encode(shown))) or rest[:1]
    shown["content"] = part
    if len(part) < len(rest):
        shown["next_offset"] = offset + len(part)
    else:
        del shown["next_offset"]
    return _encode(shown)


def _slim(envelope: dict[str, Any], room: int) -> None:
    if len(_encode(envelope)) > room:
        for name in ("metadata", "references"):
            if envelope.pop(name, None) is not None:
                envelope[name + "_omitted"] = True


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
