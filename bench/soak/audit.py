"""The database, Redis, the index and what every session was shown, held against each other.

Every function gives the differences that it finds, in words; none is what there should be.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Final

import hiredis
import msgspec

from agentbus.mirror import keys
from agentbus.model.ids import ChannelId
from agentbus.search.document import document
from agentbus.search.fts5.read import IndexReader, Range
from agentbus.search.request import build
from agentbus.wire.links import RowInserted, SearchFilter
from bench.redis import Redis
from bench.soak.members import MEMORIES, ORDINARY, Books, Session

LIVE: Final = """
    SELECT c.name, m.channel_id, m.seq, m.session_id, m.envelope, m.memory_id, m.revision, m.id
    FROM messages m JOIN channels c ON c.id = m.channel_id WHERE m.tombstone = 0 ORDER BY m.id
"""
COUNTS: Final = "SELECT messages, memories, evicted, logical_bytes, live_bytes FROM meta"


class Stored(msgspec.Struct):
    """What the database holds: its live rows by channel, in the order of acceptance."""

    channels: dict[str, ChannelId]
    rows: dict[str, list[RowInserted]]
    counts: tuple[int, int, int, int, int]

    def envelopes(self, channel: str) -> dict[int, bytes]:
        """By position."""
        return {row.seq: row.envelope for row in self.rows[channel]}


def read_database(path: str) -> Stored:
    """One state of the file. Raises sqlite3.DatabaseError where it is damaged."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        if connection.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("quick_check found damage")
        channels = dict(connection.execute("SELECT name, id FROM channels"))
        rows: dict[str, list[RowInserted]] = {name: [] for name in channels}
        for name, *row in connection.execute(LIVE):
            rows[name].append(RowInserted(*row))
        return Stored(channels, rows, connection.execute(COUNTS).fetchone())


def database(stored: Stored, books: Books) -> Iterator[str]:
    """Everything accepted is there as it was accepted, or was evicted; nothing else is."""
    accepted = dict(books.accepted)
    for channel in ORDINARY:
        yield from _ordinary(stored.rows[channel], channel, accepted, books.content)
    yield from _memories(stored.rows[MEMORIES], books)
    messages = sum(len(stored.rows[channel]) for channel in ORDINARY)
    evicted = sum(channel != MEMORIES for channel, _, _ in accepted.values()) - messages
    if stored.counts[:3] != (messages, len(stored.rows[MEMORIES]), evicted):
        there = (messages, len(stored.rows[MEMORIES]), evicted)
        yield f"database: counts say {stored.counts[:3]}, there are {there}"
    live = sum(len(row.envelope) for rows in stored.rows.values() for row in rows)
    if stored.counts[4] != live:
        yield f"database: live bytes are said to be {stored.counts[4]} and are {live}"


def _ordinary(
    rows: Sequence[RowInserted],
    channel: str,
    accepted: dict[str, tuple[str, int, str]],
    content: dict[str, str],
) -> Iterator[str]:
    places = {seq: key for key, (name, seq, _) in accepted.items() if name == channel}
    if sorted(places) != list(range(1, len(places) + 1)):
        yield f"{channel}: the positions given out are not one after another"
    first = rows[0].seq if rows else len(places) + 1
    if [row.seq for row in rows] != list(range(first, len(places) + 1)):
        yield f"{channel}: the database does not hold every position from {first} on"
    numbers: dict[str, int] = defaultdict(int)
    for seq in sorted(places):
        sender, _, number = places[seq].rpartition("-")
        if int(number) <= numbers[sender]:
            yield f"{channel}: {places[seq]} stands behind a later one of its sender"
        numbers[sender] = int(number)
    for row in rows:
        message = msgspec.json.decode(row.envelope)
        key = places.get(row.seq)
        if key is None or (message["message_id"], message["content"]) != (key, content[key]):
            yield f"{channel}: position {row.seq} is not what was accepted there"


def _memories(rows: Sequence[RowInserted], books: Books) -> Iterator[str]:
    there = {str(row.memory_id): row for row in rows}
    wanted = books.revisions.keys() - books.deleted
    if there.keys() != wanted:
        yield f"memories: {len(wanted - there.keys())} missing, {len(there.keys() - wanted)} left"
    for memory in there.keys() & wanted:
        message = msgspec.json.decode(there[memory].envelope)
        revision = max(books.revisions[memory])
        if (message["revision"], message["content"]) != (
            revision,
            books.revisions[memory][revision],
        ):
            yield f"memories: {memory} is not at its last revision {revision}"


def redis(stored: Stored, server: Redis) -> Iterator[str]:
    """Redis holds exactly the live rows."""
    for channel, number in stored.channels.items():
        entries = server.run(b"XRANGE", keys.stream(number), b"-", b"+")
        contents = _pairs(server.run(b"HGETALL", keys.contents(number)))
        found = {keys.position(entry): _envelope(fields, contents) for entry, fields in entries}
        if found != stored.envelopes(channel):
            missing = stored.envelopes(channel).keys() - found.keys()
            more = found.keys() - stored.envelopes(channel).keys()
            yield f"redis, {channel}: {len(missing)} missing, {len(more)} too many, or others"
        if contents and len(contents) != len(found):
            yield f"redis, {channel}: {len(contents)} contents of {len(found)} memories"


def _pairs(flat: Any) -> dict[bytes, bytes]:
    if isinstance(flat, hiredis.ReplyError):
        raise flat
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _envelope(fields: list[bytes], contents: dict[bytes, bytes]) -> bytes | None:
    entry = _pairs(fields)
    memory = entry.get(keys.MEMORY)
    return entry.get(keys.ENVELOPE) if memory is None else contents.get(memory)


def index(stored: Stored, path: str) -> Iterator[str]:
    """Every live row is in the index, and is found by a word that it alone has."""
    rows = {row.id: row for found in stored.rows.values() for row in found}
    with closing(IndexReader(path)) as reader, reader.searching(lambda: False) as search:
        whole = Range(0, 2**62)

        def ids(query: str) -> set[int]:
            request = build(query, SearchFilter(), "newest", 1000, None, 1, {}, "soak")
            return {number for number, *_ in search.candidates(request, whole)}

        missing = rows.keys() - ids("")
        if missing:
            yield f"index: {len(missing)} of {len(rows)} rows are not in it"
        for number in sorted(rows)[:: max(1, len(rows) // 1000)]:
            word = document(rows[number]).words.split()[0]
            if number not in ids(word):
                yield f"index: row {number} is not found by {word}"


def session(who: Session, books: Books, stored: Stored) -> Iterator[str]:
    """What a session was shown: all that others sent, once and in order, but for exact gaps."""
    for channel in ORDINARY:
        yield from _shown(who, channel, books)
    last: dict[tuple[int, str], int] = defaultdict(int)
    said = {text for texts in books.revisions.values() for text in texts.values()}
    for shown in who.shown:
        if shown.message is None:
            continue
        seq, key = shown.message["seq"], (shown.adapter, shown.channel)
        if seq <= last[key]:
            yield f"{who.name}, {shown.channel}: {seq} came after {last[key]}"
        last[key] = seq
        message_id, content = shown.message["message_id"], shown.message["content"]
        if shown.channel == MEMORIES:
            if content not in said:
                yield f"{who.name}: a memory at {seq} says what nobody wrote"
        elif books.content.get(message_id) != content:
            yield f"{who.name}, {shown.channel}: {seq} says something else than was sent"
    yield from _memories_shown(who, books, stored)


def _shown(who: Session, channel: str, books: Books) -> Iterator[str]:
    others = _of_others(who, channel, books)
    seen = _seen(who, channel)
    if not seen <= others:
        yield f"{who.name}, {channel}: was shown {len(seen - others)} of its own"
    lost: set[int] = set()
    for gap in (shown.gap for shown in who.shown if shown.channel == channel):
        if gap is None:
            continue
        within = {seq for seq in others if gap["after_seq"] < seq < gap["resumed_at_seq"]}
        if gap["lost"] != len(within):
            yield f"{who.name}, {channel}: a gap says {gap['lost']} and is {len(within)} wide"
        lost |= within
    missing = others - seen - lost
    if missing:
        yield f"{who.name}, {channel}: {len(missing)} never came, from {min(missing)} on"


def _memories_shown(who: Session, books: Books, stored: Stored) -> Iterator[str]:
    there = {row.seq for row in stored.rows[MEMORIES]}
    missing = (there & _of_others(who, MEMORIES, books)) - _seen(who, MEMORIES)
    if missing:
        yield f"{who.name}: {len(missing)} memories never came, from {min(missing)} on"


def _of_others(who: Session, channel: str, books: Books) -> set[int]:
    accepted = books.accepted.values()
    return {seq for name, seq, sender in accepted if name == channel and sender != who.name}


def _seen(who: Session, channel: str) -> set[int]:
    messages = (shown.message for shown in who.shown if shown.channel == channel)
    return {message["seq"] for message in messages if message is not None}
