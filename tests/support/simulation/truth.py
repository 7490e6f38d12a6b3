"""What must be true at every moment, checked at the moment it could become false.

The database is looked at after every transaction, by a reader of its own; what adapters hand off
is looked at when its last byte is out; answers are looked at when they are read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentbus import sqlite

ROWS: Final = """
    SELECT m.id, c.name, m.seq, m.message_id, m.commit_id, m.envelope, s.native, m.memory_id,
        m.revision
    FROM messages m JOIN channels c ON c.id = m.channel_id JOIN sessions s ON s.id = m.session_id
    WHERE m.id > ? ORDER BY m.id
"""
OLDEST: Final = (
    "SELECT ifnull(min(id), (SELECT last_id FROM meta) + 1) FROM messages WHERE memory_id IS NULL"
)
MEMORIES: Final = "SELECT memory_id FROM messages WHERE memory_id IS NOT NULL AND tombstone = 0"
CURSORS: Final = """
    SELECT u.id, s.native, c.name, u.position FROM subscriptions u
    JOIN sessions s ON s.id = u.session_id JOIN channels c ON c.id = u.channel_id
"""


UNDER_WAY: Final = 1.0
"""What the daemon has told is read by then."""


class Violation(AssertionError):
    """A promise of the bus was broken."""


class Row(msgspec.Struct):
    """A message as it is stored; `gone` when it was evicted, or its memory deleted."""

    id: int
    channel: str
    seq: int
    message_id: str
    commit_id: int
    envelope: bytes
    session: str
    memory_id: str | None
    revision: int | None
    gone: bool = False


class Memory(msgspec.Struct):
    """All its revisions; since when it is known to everybody that a revision has been replaced."""

    channel: str
    revisions: list[Row]
    deleted: bool = False
    answered: int = 0
    """The lowest revision that may still be shown: lower ones were replaced, and that was told."""
    answered_at: float = 0.0


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
    seen: dict[int, None] = {}
    """By the last of its adapters."""


def require(condition: bool, text: str, *facts: object) -> None:
    """Raises Violation."""
    if not condition:
        raise Violation(f"{text}: {', '.join(map(str, facts))}")


class Truth:
    """What is stored, accepted and shown."""

    def __init__(self, database: str, now: Callable[[], float]) -> None:
        self.rows: dict[str, Row] = {}
        """By message id."""
        self.streams: dict[str, list[Row]] = {}
        self.cursors: dict[int, Cursor] = {}
        self.accepted: dict[str, tuple[str, int]] = {}
        self.shown: dict[tuple[str, str], Shown] = {}
        self.memories: dict[str, Memory] = {}
        self.lost = 0
        """Positions that gaps have told of."""
        self._database = database
        self._now = now
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
        for columns in self.connection().execute(ROWS, (self._last_id,)).fetchall():
            self._last_id = columns[0]
            self._stored(Row(*columns))
        self._look_for_losses()
        found = self.connection().execute(CURSORS).fetchall()
        for id_, session, channel, position in found:
            self._stands(id_, session, channel, position)
        for gone in self.cursors.keys() - {id_ for id_, *_ in found}:
            del self.cursors[gone]

    def _look_for_losses(self) -> None:
        (oldest,) = self.connection().execute(OLDEST).fetchone()
        for row in self.rows.values():
            if row.memory_id is None and row.id < oldest:
                row.gone = True
        current = {identity for (identity,) in self.connection().execute(MEMORIES).fetchall()}
        for identity, memory in self.memories.items():
            if identity not in current and not memory.deleted:
                memory.deleted = memory.revisions[0].gone = True

    def _stored(self, row: Row) -> None:
        stream = self.streams.setdefault(row.channel, [])
        if row.revision is None or row.revision == 1:
            require(row.seq == len(stream) + 1, "a position is missing or taken twice", row)
            sender = msgspec.json.decode(row.envelope)["sender"]
            require(sender == row.session, "sent under another name", row)
            stream.append(row)
        if row.memory_id is not None:
            memory = self.memories.setdefault(row.memory_id, Memory(row.channel, []))
            require(row.revision == len(memory.revisions) + 1, "a revision is missing", row)
            require(not memory.deleted, "a deleted memory lives again", row)
            memory.revisions.append(row)
        require(row.message_id not in self.rows, "an operation has two rows", row)
        require(row.commit_id >= self._last_commit, "commit numbers go back", row)
        self._last_commit = row.commit_id
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
            row = stream[seq - 1]
            deleted = row.gone and row.memory_id is not None
            if seq not in shown.ahead and row.session != session and not deleted:
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
        if any(result[each] for each in ("messages", "gaps", "notices", "more")):
            return
        for channel, seq in accepted.items():
            ahead = self.streams[channel][self.until(session, channel) : seq]
            wrong = [row.seq for row in ahead if row.session != session and not row.gone]
            require(not wrong, "a recv found nothing, wrongly", session, channel, wrong)

    def changed(self, memory_id: str, revision: int | None, now: float) -> None:
        """It was answered that a memory has this revision now, or was deleted."""
        memory = self.memories[memory_id]
        last = memory.revisions[-1].revision
        assert last is not None
        require(revision is None or revision <= last, "changed, but not stored", memory_id)
        require(revision is not None or memory.deleted, "deleted, but still there", memory_id)
        lowest = last + 1 if revision is None else revision
        if lowest > memory.answered:
            memory.answered, memory.answered_at = lowest, now

    def obsolete(self, message: dict[str, Any]) -> float | None:
        """Since when everybody may know that this has been replaced."""
        memory = self.memories.get(message.get("memory_id", ""))
        if memory is None or message["revision"] >= memory.answered:
            return None
        return memory.answered_at

    def look_back(self, arguments: dict[str, Any], result: dict[str, Any], began: float) -> None:
        """A history was answered, that was asked for at a time."""
        stream = self.streams.get(arguments["channel"], [])
        seqs = [message["seq"] for message in result["messages"]]
        require(len(seqs) <= arguments["limit"], "too long a history", arguments, seqs)
        first = seqs[0] if seqs else 1
        missing = set(range(first, seqs[-1] + 1 if seqs else first)) - set(seqs)
        holes = [seq for seq in sorted(missing) if not stream[seq - 1].gone]
        require(seqs == sorted(set(seqs)) and not holes, "a history with holes", seqs, holes)
        after, before = arguments.get("after", 0), arguments.get("before", len(stream) + 1)
        require(all(after < seq < before for seq in seqs), "out of bounds", arguments, seqs)
        for message in result["messages"]:
            self._require_stored(message)
            since = self.obsolete(message)
            require(since is None or since >= began, "an obsolete history", message, since, began)

    def _require_stored(self, message: dict[str, Any]) -> Row:
        stream = self.streams.get(message["channel"], [])
        require(message["seq"] <= len(stream), "shown, but not stored", message)
        row: Row = stream[message["seq"] - 1]
        if row.memory_id is not None:
            require(message["memory_id"] == row.memory_id, "another memory", row, message)
            row = self.memories[row.memory_id].revisions[message["revision"] - 1]
        require(message == msgspec.json.decode(row.envelope), "shown otherwise", row, message)
        return row

    def show(self, session: str, life: int, result: dict[str, Any], since: float) -> None:
        """A recv result was handed off by the session's so manyeth adapter, which has attended to
        its connection since then."""
        if "error" in result:
            return
        gaps = list(result["gaps"])
        for message in result["messages"]:
            before = [gap for gap in gaps if gap["channel"] == message["channel"]]
            for gap in before:
                if gap["resumed_at_seq"] <= message["seq"]:
                    gaps.remove(gap)
                    self._skip(session, life, gap)
            self._show(session, life, message)
            told = self.obsolete(message)
            late = told is not None and since < told < self._now() - UNDER_WAY
            require(not late, "obsolete, and shown", session, message, told)
        for gap in gaps:
            self._skip(session, life, gap)

    def _skip(self, session: str, life: int, gap: dict[str, Any]) -> None:
        """A gap is exact: what it leaves out is gone, and counted."""
        channel, after, resumed = gap["channel"], gap["after_seq"], gap["resumed_at_seq"]
        shown, stream = self._begin(session, life, channel), self.streams[channel]
        until = self.until(session, channel)
        passed = [each.seq for each in stream[until:after] if each.session != session]
        require(not passed, "passed over before a gap", session, passed, gap)
        require(after >= shown.last, "a gap told twice", session, shown.last, gap)
        within = [row for row in stream[after : resumed - 1] if row.session != session]
        present = [row.seq for row in within if not row.gone]
        require(not present, "a gap, but it is there", session, present, gap)
        unseen = [row.seq for row in within if row.seq not in shown.seen]
        require(len(unseen) == gap["lost"], "a gap counted wrongly", session, unseen, gap)
        shown.last = max(shown.last, resumed - 1)
        self.lost += len(unseen)
        for row in within:
            if row.seq > until:
                shown.ahead[row.seq] = None

    def _begin(self, session: str, life: int, channel: str) -> Shown:
        shown = self.shown.get((session, channel))
        require(shown is not None, "shown, but not subscribed to", session, channel)
        assert shown is not None
        if shown.life != life:
            shown.life, shown.last, shown.seen = life, 0, {}
        return shown

    def _show(self, session: str, life: int, message: dict[str, Any]) -> None:
        channel, seq = message["channel"], message["seq"]
        shown, stream = self._begin(session, life, channel), self.streams.get(channel, [])
        self._require_stored(message)
        row = stream[seq - 1]
        require(row.session != session, "shown to whoever sent it", row)
        require(seq > shown.last, "shown twice, or out of order", session, shown.last, row)
        until = self.until(session, channel)
        passed = [
            each.seq
            for each in stream[until : seq - 1]
            if each.session != session and not (each.gone and each.memory_id is not None)
        ]
        require(not passed, "passed over", session, passed, row)
        shown.last = seq
        shown.seen[seq] = None
        if seq > until:
            shown.ahead[seq] = None

    def missing(self) -> list[tuple[str, str, int]]:
        """Whoever is still to be shown something, or to have it reported: session, channel, and
        how far the cursor is, own messages left out."""
        found = []
        for cursor in self.cursors.values():
            stream = self.streams.get(cursor.channel, [])
            ahead = stream[cursor.position :]
            if any(row.session != cursor.session and not row.gone for row in ahead):
                found.append((cursor.session, cursor.channel, cursor.position))
        return found
