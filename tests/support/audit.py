"""What must be true of a bus and its readers after any crash."""

from __future__ import annotations

import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import msgspec

from agentbus.mirror import keys
from agentbus.model.ids import ChannelId
from tests.support import redis
from tests.support.daemon import Daemon
from tests.support.traffic import CHANNELS, Reader, Sender, Traffic

LIVE = """
    SELECT channel_id, seq, message_id, memory_id, envelope
    FROM messages WHERE NOT tombstone ORDER BY 1, 2
"""


@contextmanager
def audited(bus: Daemon, senders: int = 4) -> Iterator[Traffic]:
    """Traffic, and everything below after it; the bus has stopped then."""
    traffic = Traffic(bus, senders)
    with traffic.running():
        yield traffic
    copies(bus)
    bus.stop()
    streams = database(bus.paths.database, traffic.senders)
    order_of_senders(streams)
    received(traffic.reader, streams)


def copies(bus: Daemon) -> None:
    """Redis and the search index of a bus that runs, and comes to rest, hold what the database
    does: every message and the present revision of every memory, in their places, and no other."""
    bus.wait_until(rests)
    with closing(_open(bus.paths.database)) as connection:
        rows = connection.execute(LIVE).fetchall()
        channels = connection.execute("SELECT id, kind FROM channels").fetchall()
    with redis.of_bus(bus.paths) as sock:
        for channel, kind in channels:
            expected = [row for row in rows if row[0] == channel]
            (entries,) = redis.ask(sock, (b"XRANGE", keys.stream(channel), b"-", b"+"))
            field, column = (keys.MEMORY, 3) if kind == "memory" else (keys.ENVELOPE, 4)
            assert [_entry(entry, field) for entry in entries] == [
                (row[1], _bytes(row[column])) for row in expected
            ]
            if kind == "memory":
                contents = {_bytes(row[3]): _bytes(row[4]) for row in expected}
                assert _contents(sock, channel) == contents
    _found(bus, rows)


def rests(status: dict[str, Any]) -> bool:
    """Whether Redis and the index are where the database is."""
    copies = (status["redis"], status["index"])
    return status["state"] == "ready" and not any(copy and copy["lag_commits"] for copy in copies)


def _open(path: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _entry(entry: list[Any], field: bytes) -> tuple[int, bytes]:
    fields = dict(zip(entry[1][::2], entry[1][1::2], strict=True))
    return keys.position(entry[0]), fields[field]


def _contents(sock: Any, channel: ChannelId) -> dict[bytes, bytes]:
    (flat,) = redis.ask(sock, (b"HGETALL", keys.contents(channel)))
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _found(bus: Daemon, rows: list[tuple[Any, ...]]) -> None:
    """Every row by its own content."""
    with bus.peer() as peer:
        auditor = peer.attach(f"auditor-{os.urandom(4).hex()}")
        for row in rows:
            content = msgspec.json.decode(row[4])["content"]
            results = auditor.call("search", query=content)["results"]
            assert row[2] in [result["message"]["message_id"] for result in results], content


def database(path: str, senders: Iterable[Sender]) -> dict[str, list[dict[str, Any]]]:
    """Checks the file of a bus that has stopped; the envelopes of each channel, by position.

    Every accepted message is there, once, as it was accepted, with its receipt; and nothing else,
    since every sender went on until it knew.
    """
    accepted = {key: where for sender in senders for key, where in sender.accepted.items()}
    with closing(_open(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = connection.execute(
            "SELECT c.name, m.seq, m.message_id, m.commit_id, m.envelope"
            " FROM messages m JOIN channels c ON c.id = m.channel_id ORDER BY m.id"
        ).fetchall()
        receipts = connection.execute("SELECT operation_id, seq FROM receipts").fetchall()
        counted = connection.execute("SELECT messages, receipts FROM meta").fetchone()
    assert {key: (channel, seq) for channel, seq, key, _, _ in rows} == accepted
    assert len(rows) == len(accepted)
    assert dict(receipts) == {key: seq for key, (_, seq) in accepted.items()}
    assert counted == (len(rows), len(receipts))
    commits = [commit for _, _, _, commit, _ in rows]
    assert commits == sorted(commits)
    streams: dict[str, list[dict[str, Any]]] = {channel: [] for channel in CHANNELS}
    for channel, seq, key, _, envelope in rows:
        message = msgspec.json.decode(envelope)
        assert (message["channel"], message["seq"], message["message_id"]) == (channel, seq, key)
        assert message["content"] == key
        streams[channel].append(message)
    for stream in streams.values():
        assert [message["seq"] for message in stream] == list(range(1, len(stream) + 1))
    return streams


def order_of_senders(streams: dict[str, list[dict[str, Any]]]) -> None:
    """In each channel, what one session sent stands in the order in which it sent it."""
    for stream in streams.values():
        numbers: dict[str, list[int]] = defaultdict(list)
        for message in stream:
            sender, _, number = message["content"].partition("-")
            numbers[sender].append(int(number))
        for sent in numbers.values():
            assert sent == sorted(sent)


def received(reader: Reader, streams: dict[str, list[dict[str, Any]]]) -> None:
    """The reader has every message, in order per channel and as stored.

    No adapter was shown anything twice; one that follows a killed adapter may be shown again, from
    some point on, what that one was shown.
    """
    for channel, stream in streams.items():
        last = adapter = 0
        furthest = 0
        for number, message in reader.received:
            if message["channel"] != channel:
                continue
            seq = message["seq"]
            if number != adapter:
                assert seq <= furthest + 1
                adapter = number
            else:
                assert seq == last + 1
            last = seq
            furthest = max(furthest, seq)
            assert message == stream[seq - 1]
        assert furthest == len(stream)


def stored(path: str) -> list[str]:
    """The ids of the messages in the file of a bus that has stopped, in their order.

    The file is sound, and holds nothing half: each row has its receipt, and is counted.
    """
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = connection.execute("SELECT message_id, seq FROM messages ORDER BY id").fetchall()
        receipts = connection.execute("SELECT operation_id, seq FROM receipts").fetchall()
        counted = connection.execute("SELECT messages, receipts FROM meta").fetchone()
    assert dict(receipts) == dict(rows)
    assert counted == (len(rows), len(receipts))
    return [message_id for message_id, _ in rows]
