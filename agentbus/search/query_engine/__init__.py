"""The index within Redis, where the server has a query engine.

    ab:docs              the index, over the hashes whose keys begin with `d:`
    d:<channel>:<seq>    hash: the document of the message at a position; of a memory the current
                         revision, so that an edit replaces it in place
        t                words, tokens between spaces
        p                parts of CamelCase words, likewise
        f                marks, by which filters find it
        n                row id: orders all messages
        a                when it was sent, milliseconds since 1970
        m                memory id, of memories only

The engine's prefixes know characters of 16 bits alone: those beyond stand in the fields as two of
the private use area, which the normaliser leaves free.

`write` is for the projector, which adds a document in the transaction that adds the message;
`read` for whoever asks. Envelopes are not in the hashes: they are where the streams have them.
"""

from __future__ import annotations

from typing import Final

from agentbus.model.ids import ChannelId, Seq

INDEX: Final = b"ab:docs"
PREFIX: Final = b"d:"

WORDS: Final = b"t"
PARTS: Final = b"p"
MARKS: Final = b"f"
ID: Final = b"n"
SENT_AT: Final = b"a"
MEMORY: Final = b"m"

Command = tuple[bytes, ...]
Place = tuple[ChannelId, Seq]


class _Halves(dict[int, int | str]):
    """For `str.translate`; each character decided once."""

    def __missing__(self, code: int) -> int | str:
        beyond = code - 0x10000
        halves = chr(0xE000 + (beyond >> 10)) + chr(0xE400 + (beyond & 0x3FF))
        self[code] = found = code if beyond < 0 else halves
        return found


_HALVES: Final = _Halves()


def field(text: str) -> str:
    """Text as the fields have it."""
    return text if text.isascii() else text.translate(_HALVES)


def key(place: Place) -> bytes:
    """Of the document at a position."""
    return b"d:%d:%d" % place


def place(document_key: bytes) -> Place:
    """The position whose document has this key."""
    _, channel, seq = document_key.split(b":")
    return ChannelId(int(channel)), Seq(int(seq))
