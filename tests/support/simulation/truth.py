"""What must be true at every moment, checked at the moment it could become false.

The database is looked at after every transaction, by a reader of its own; what adapters hand off
is looked at when its last byte is out; answers are looked at when they are read.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from agentbus import sqlite

ROWS: Final = """
    SELECT m.id, c.name, m.seq, m.message_id, m.commit_id, m.envelope, s.native
    FROM messages m JOIN channels c ON c.id = m.channel_id JOIN sessions s ON s.id = m.session_id
    WHERE m.id > ? ORDER BY m.id
"""
CURSORS: Final = """
    SELECT u.id, s.native, c.name, u.position FROM subscriptions u
    JOIN sessions s ON s.id = u.session_id JOIN channels c ON c.id = u.channel_id
"""


class Violation(AssertionError):
    """A promise of the bus was broken."""


class Row(msgspec.Struct, frozen=True):
    """A message as it is stored."""

    channel: str
    seq: int
    message_id: str
    commit_id: int
    envelope: bytes
    session: str


class Cursor(msgspec.Struct):
    """A subscription: where it began, and where it stands."""

    session: str
    channel: str
    start: int
    position: int


class Shown(msgspec.Struct):
    """What one session was shown of one channel: by any adapter, without a hole, and by the last
    of its adapters."""

    until: int
    ahead: dict[int, None]
    life: int = 0
    last: int = 0


def require(condition: bool, text: str, *facts: object) -> None:
    """Raises Violation."""
    if not condition:
        raise Violation(f"{text}: {', '.join(map(str, facts))}")


class Truth:
    """What is stored, accepted and shown."""

    def __init__(self, database: str) -> None:
        self.rows: dict[str, Row] = {}
        """By message id."""
        self.streams: dict[str, list[Row]] = {}
        self.cursors: dict[int, Cursor] = {}
        self.accepted: dict[str, tuple[str, int]] = {}
        self.shown: dict[tuple[str, str], Shown] = {}
        self._database = database
        self._connection: sqlite.Connection | None = None
        self._tops: dict[str, int] = {}
        self._last_id = self._last_commit = 0

    def connection(self) -> sqlite.Connection:
        """The reader."""
        if self._connection is None:
            self._connection = sqlite.open_reader(self._database)
        return self._connection

    def close(self) -> None:
        """No more looks."""
        if self._connection is not None:
            self._connection.close()

    # ---- the database

    def committed(self) -> None:
        """A transaction was committed."""
        for id_, *columns in self.connection().execute(ROWS, (self._last_id,)).fetchall():
            self._last_id = id_
            self._stored(Row(*columns))
        found = self.connection().execute(CURSORS).fetchall()
        for id_, session, channel, position in found:
            self._stands(id_, session, channel, position)
        for gone in self.cursors.keys() - {id_ for id_, *_ in found}:
            del self.cursors[gone]

    def _stored(self, row: Row) -> None:
        stream = self.streams.setdefault(row.channel, [])
        require(row.seq == len(stream) + 1, "a position is missing or taken twice", row)
        require(row.message_id not in self.rows, "an operation has two rows", row)
        require(row.commit_id >= self._last_commit, "commit numbers go back", row)
        self._last_commit = row.commit_id
        sender = msgspec.json.decode(row.envelope)["sender"]
        require(sender == row.session, "sent under another name", row)
        stream.append(row)
        self.rows[row.message_id] = row

    def _stands(self, id_: int, session: str, channel: str, position: int) -> None:
        cursor = self.cursors.get(id_)
        if cursor is None:
            self.cursors[id_] = Cursor(session, channel, position, position)
            self.shown[session, channel] = Shown(position, {})
            return
        if position == cursor.position:
            return
        require(position > cursor.position, "a cursor goes back", cursor, position)
        until = self.until(session, channel)
        require(
            position <= until, "a cursor passes what was not delivered", cursor, position, until
        )
        cursor.position = position

    def until(self, session: str, channel: str) -> int:
        """How far a session was shown everything, its own messages left out."""
        shown, stream = self.shown[session, channel], self.streams.get(channel, [])
        while shown.until < len(stream):
            seq = shown.until + 1
            if seq not in shown.ahead and stream[seq - 1].session != session:
                break
            shown.ahead.pop(seq, None)
            shown.until = seq
        return shown.until

    # ---- what clients see

    def accept(self, message_id: str, channel: str, result: dict[str, Any]) -> None:
        """A send was answered."""
        row = self.rows.get(message_id)
        require(row is not None, "accepted, but not stored", message_id, result)
        assert row is not None
        told = (channel, result["seq"])
        require((row.channel, row.seq) == told, "accepted as something else", row, told)
        self.accepted[message_id] = told
        self._tops[channel] = max(self._tops.get(channel, 0), row.seq)

    def tops(self) -> dict[str, int]:
        """The newest position by channel that somebody knows to be accepted."""
        return dict(self._tops)

    def nothing(self, session: str, result: dict[str, Any], accepted: dict[str, int]) -> None:
        """A recv was answered, to which all this had been accepted before it was called."""
        if result["messages"] or result["more"]:
            return
        for channel, seq in accepted.items():
            until = self.until(session, channel)
            require(until >= seq, "a recv found nothing, wrongly", session, channel, until, seq)

    def look_back(self, arguments: dict[str, Any], result: dict[str, Any]) -> None:
        """A history was answered."""
        stream = self.streams.get(arguments["channel"], [])
        seqs = [message["seq"] for message in result["messages"]]
        require(len(seqs) <= arguments["limit"], "too long a history", arguments, seqs)
        first = seqs[0] if seqs else 1
        require(seqs == list(range(first, first + len(seqs))), "a history with holes", seqs)
        after, before = arguments.get("after", 0), arguments.get("before", len(stream) + 1)
        require(all(after < seq < before for seq in seqs), "out of bounds", arguments, seqs)
        for message in result["messages"]:
            self._require_stored(message)

    def _require_stored(self, message: dict[str, Any]) -> Row:
        stream = self.streams.get(message["channel"], [])
        require(message["seq"] <= len(stream), "shown, but not stored", message)
        row: Row = stream[message["seq"] - 1]
        require(message == msgspec.json.decode(row.envelope), "shown otherwise", row, message)
        return row

    def show(self, session: str, life: int, result: dict[str, Any]) -> None:
        """A recv result was handed off by the session's so manyeth adapter."""
        if "error" in result:
            return
        require(not result["gaps"], "a gap, though nothing was ever removed", session, result)
        for message in result["messages"]:
            self._show(session, life, message)

    def _show(self, session: str, life: int, message: dict[str, Any]) -> None:
        channel, seq = message["channel"], message["seq"]
        shown, stream = self.shown.get((session, channel)), self.streams.get(channel, [])
        require(shown is not None, "shown, but not subscribed to", session, message)
        assert shown is not None
        row = self._require_stored(message)
        if shown.life != life:
            shown.life, shown.last = life, 0
        require(row.session != session, "shown to whoever sent it", row)
        require(seq > shown.last, "shown twice, or out of order", session, shown.last, row)
        until = self.until(session, channel)
        passed = [each.seq for each in stream[until : seq - 1] if each.session != session]
        require(not passed, "passed over", session, passed, row)
        shown.last = seq
        if seq > until:
            shown.ahead[seq] = None

    def missing(self) -> list[tuple[str, str, int]]:
        """Whoever is still to be shown something, or to have it reported: session, channel, and
        how far the cursor is, own messages left out."""
        found = []
        for cursor in self.cursors.values():
            stream = self.streams.get(cursor.channel, [])
            ahead = stream[cursor.position :]
            if any(row.session != cursor.session for row in ahead):
                found.append((cursor.session, cursor.channel, cursor.position))
        return found
