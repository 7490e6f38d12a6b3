"""Writing the index in Redis: only the projector may import this module.

Commands are plain tuples, for a transaction with others or a pipeline. `FLUSHALL` removes the index
as well: `setup` must follow it.
"""

from __future__ import annotations

from typing import Any, Final

from agentbus.search import document
from agentbus.search.document import Document
from agentbus.search.query_engine import (
    ID,
    INDEX,
    MARKS,
    MEMORY,
    PARTS,
    PREFIX,
    SENT_AT,
    WORDS,
    Command,
    Place,
    field,
    key,
)
from agentbus.search.request import milliseconds

VERSION: Final = f"1.{document.VERSION}"
"""Names what the index is made of: another one must be rebuilt, so it belongs into the schema that
Redis is marked with."""

OPTIONS: Final[list[Command]] = [
    (b"FT.CONFIG", b"SET", b"MINPREFIX", b"1"),
    (b"FT.CONFIG", b"SET", b"MAXPREFIXEXPANSIONS", b"1000000"),
    (b"FT.CONFIG", b"SET", b"ON_TIMEOUT", b"fail"),
    (b"FT.CONFIG", b"SET", b"FORK_GC_RUN_INTERVAL", b"5"),
]
"""Once a server, refusals ignored: without them short prefixes find nothing, common ones not all, a
search that takes too long finds a part without saying so, and what was evicted takes its room for
half a minute more, in which too much would be evicted."""

CREATE: Final[Command] = (
    *(b"FT.CREATE", INDEX, b"ON", b"HASH", b"PREFIX", b"1", PREFIX),
    *(b"NOHL", b"STOPWORDS", b"0", b"SCHEMA"),
    *(WORDS, b"TEXT", b"NOSTEM"),
    *(PARTS, b"TEXT", b"NOSTEM", b"WEIGHT", b"0.5"),
    *(MARKS, b"TAG", b"SEPARATOR", b" ", b"CASESENSITIVE"),
    *(ID, b"NUMERIC", b"SORTABLE"),
    *(SENT_AT, b"NUMERIC"),
)
"""Makes the index; refused where there is one."""

INSPECT: Final[Command] = (b"FT.INFO", INDEX)
"""Refused where there is no index; else `is_complete` reads the reply."""


def is_complete(reply: Any) -> bool:
    """Whether all documents are in: after a start from a snapshot they are indexed meanwhile."""
    if not isinstance(reply, list):
        return False
    facts = dict(zip(reply[::2], reply[1::2], strict=False))
    return facts.get(b"indexing") in (b"0", 0)


def put(found: Document, memory_id: str | None) -> Command:
    """Adds a document, or replaces the one of the memory's revision before it."""
    command: Command = (
        *(b"HSET", key(found.place)),
        *(WORDS, field(found.words).encode(errors="replace")),
        *(PARTS, found.parts.encode()),
        *(MARKS, found.marks.encode()),
        *(ID, b"%d" % found.id),
        *(SENT_AT, b"%d" % milliseconds(found.sent_at)),
    )
    return command if memory_id is None else (*command, MEMORY, memory_id.encode())


def remove(place: Place) -> Command:
    """Removes the document at a position, if there is one."""
    return (b"DEL", key(place))
