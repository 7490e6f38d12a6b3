"""What must be true of a bus and its readers after any crash."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import msgspec

from tests.support.traffic import CHANNELS, Reader, Sender


def database(path: str, senders: Iterable[Sender]) -> dict[str, list[dict[str, Any]]]:
    """Checks the file of a bus that has stopped; the envelopes of each channel, by position.

    Every accepted message is there, once, as it was accepted, with its receipt; and nothing else,
    since every sender went on until it knew.
    """
    accepted = {key: where for sender in senders for key, where in sender.accepted.items()}
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
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
