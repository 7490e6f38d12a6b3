"""Names in the dedicated Redis.

    s:<channel id>    stream of a channel; an entry's id is `<seq>-0`, so that positions of the bus
                      are positions of the stream
        e             of an ordinary channel: the envelope, JSON, exactly the bytes that the
                      database holds
        m             of a memory channel, instead: the memory id
        s             row id of the sending session (which created the memory), so that own
                      messages are known unparsed
    m:<channel id>    hash of a memory channel: memory id, envelope of the current revision; as
                      many as the stream has entries
    d:<channel>:<seq> document of a message, for a server with a query engine: see
                      `search.query_engine`
    ab:meta           hash: what the streams hold, set together with them
        instance      of the bus
        schema        of the database, after a dot `LAYOUT`, after a plus what documents are
                      made of, where there are any
        commit_id     the last commit that is in, or `rebuilding-<n>` until all is

Redis belongs to the bus alone: whoever finds something else in it may clear it.
"""

from __future__ import annotations

from typing import Final

from agentbus.model.ids import ChannelId, Seq

LAYOUT: Final = 2
"""Raised when this page changes, so that older contents are rebuilt."""

META: Final = b"ab:meta"
INSTANCE: Final = b"instance"
SCHEMA: Final = b"schema"
COMMIT: Final = b"commit_id"

ENVELOPE: Final = b"e"
MEMORY: Final = b"m"
SESSION: Final = b"s"


def stream(channel: ChannelId) -> bytes:
    """Key of a channel's stream."""
    return b"s:%d" % channel


def contents(channel: ChannelId) -> bytes:
    """Key of the hash with the contents of a memory channel."""
    return b"m:%d" % channel


def entry_id(seq: Seq) -> bytes:
    """Id of the entry at a position."""
    return b"%d-0" % seq


def position(entry: bytes) -> Seq:
    """Position of the entry with this id."""
    return Seq(int(entry[:-2]))
