"""What is indexed of a message: its texts, and the marks by which filters find it.

A mark is a token of ASCII letters and digits. Names are marked by a digest of their folded form, so
that a search for `sam` finds Sam, and whatever a name holds cannot be mistaken for another mark.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import msgspec

from agentbus.digest import digest
from agentbus.model.channel import Kind
from agentbus.model.ids import ChannelId, Seq
from agentbus.model.message import Reference, Scalar
from agentbus.search import normalise
from agentbus.wire.links import RowInserted

VERSION: Final = f"1.{normalise.VERSION}"
"""Raised when anything here changes what is indexed of a message."""

EVERY: Final = "x"
"""A mark that all have."""

_MARK_BYTES: Final = 8


class Document(msgspec.Struct, frozen=True, gc=False):
    """A message as both indexes take it. `id` orders all messages; `place` is where it is kept:
    a memory's revision takes the place of the one before it."""

    id: int
    place: tuple[ChannelId, Seq]
    kind: Kind
    sent_at: str
    words: str
    parts: str
    marks: str

    @property
    def text_bytes(self) -> int:
        """How much text the index was given."""
        return len(self.words) + len(self.parts)


class _Envelope(msgspec.Struct, frozen=True, gc=False):
    message_id: str
    sender: str
    agent: str
    sent_at: str
    content: str
    thread: str
    reply_to: str | None = None
    metadata: dict[str, Scalar] | None = None
    references: list[Reference] | None = None


_envelopes = msgspec.json.Decoder(_Envelope)


def document(row: RowInserted) -> Document:
    """The document of a row: its content, and what its references and metadata say."""
    envelope = _envelopes.decode(row.envelope)
    kind: Kind = "ordinary" if row.memory_id is None else "memory"
    text = normalise.text(_texts(envelope))
    return Document(
        row.id,
        (row.channel_id, row.seq),
        kind,
        envelope.sent_at,
        text.words,
        text.parts,
        _marks(envelope, row.channel_id, kind),
    )


def documents(rows: Iterable[RowInserted]) -> tuple[list[Document], list[int]]:
    """The documents of rows, and the ids of those whose envelope cannot be read."""
    found: list[Document] = []
    unreadable: list[int] = []
    for row in rows:
        try:
            found.append(document(row))
        except msgspec.DecodeError:
            unreadable.append(row.id)
    return found, unreadable


def _texts(envelope: _Envelope) -> str:
    if not envelope.references and not envelope.metadata:
        return envelope.content
    values = [reference.value for reference in envelope.references or ()]
    values += [value for value in (envelope.metadata or {}).values() if isinstance(value, str)]
    return "\n".join((envelope.content, *values))


def _marks(envelope: _Envelope, channel: ChannelId, kind: Kind) -> str:
    marks = f"{_usual_marks(channel, kind, envelope.sender)} {thread_mark(envelope.thread)}"
    if envelope.agent != envelope.sender:
        marks += f" {sender_mark(envelope.agent)}"
    if envelope.reply_to is not None:
        marks += f" {reply_mark(envelope.reply_to)}"
    return marks


@lru_cache(maxsize=1024)
def _usual_marks(channel: ChannelId, kind: Kind, sender: str) -> str:
    return f"{EVERY} {channel_mark(channel)} {kind_mark(kind)} {sender_mark(sender)}"


def channel_mark(channel: ChannelId) -> str:
    """Of messages in a channel."""
    return f"c{channel}"


def kind_mark(kind: Kind) -> str:
    """Of messages, or memories."""
    return f"k{kind}"


@lru_cache(maxsize=1024)
def sender_mark(name: str) -> str:
    """Of messages whose sender had this display name, or is this agent."""
    return _mark("n", normalise.fold(name))


def thread_mark(thread: str) -> str:
    """Of messages of a conversation."""
    return _mark("t", thread)


def reply_mark(message_id: str) -> str:
    """Of answers to a message."""
    return _mark("r", message_id)


def _mark(letter: str, value: str) -> str:
    return letter + digest(value.encode(errors="surrogatepass"), _MARK_BYTES).hex()
