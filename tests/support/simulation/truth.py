"""What must be true at every moment, checked at the moment it could become false.

The database is looked at after every transaction (`stored`); what adapters hand off is looked at
when its last byte is out; answers are looked at when they are read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentbus import sqlite
from agentbus.model.ports import Instant
from agentbus.model.session import EXPIRY_MARKER_HOURS
from tests.support.simulation.records import Cursor, Handed, Row, Shown, Terms, require
from tests.support.simulation.stored import Stored

CURSORS: Final = """
    SELECT u.id, s.native, c.name, u.position, u.include_own, u.expires_at FROM subscriptions u
    JOIN sessions s ON s.id = u.session_id JOIN channels c ON c.id = u.channel_id
"""

UNDER_WAY: Final = 0.4
"""What the daemon has told is read by then."""

Message = dict[str, Any]
Result = dict[str, Any]


class Truth:
    """What is stored, accepted and shown."""

    def __init__(
        self,
        database: str,
        terms: Terms,
        instant: Callable[[], Instant],
        leapt: Callable[[float], float],
    ) -> None:
        self.stored = Stored(database, terms, instant)
        self.rows = self.stored.rows
        self.streams = self.stored.streams
        self.memories = self.stored.memories
        self.cursors: dict[int, Cursor] = {}
        self.accepted: dict[str, tuple[str, int]] = {}
        self.shown: dict[tuple[str, str], Shown] = {}
        self.changing: dict[tuple[str, str], None] = {}
        """Sessions and channels whose subscription may be replaced or ended: they have asked."""
        self.told: dict[tuple[str, str], int] = {}
        """The positions at which sessions were told that a cursor had expired."""
        self.lost = 0
        """Positions that gaps have told of."""
        self.expired = self.resets = 0
        self._instant = instant
        self._leapt = leapt
        self._tops: dict[str, int] = {}
        self._latest = 0
        """The latest that the wall clock has shown when somebody looked, in milliseconds."""

    def connection(self) -> sqlite.Connection:
        """The reader."""
        return self.stored.connection()

    def close(self) -> None:
        """No more looks."""
        self.stored.close()

    # ---- the database

    def committed(self) -> None:
        """A transaction was committed."""
        self.stored.look()
        found = self.connection().execute(CURSORS).fetchall()
        for id_, *columns in found:
            self._stands(id_, Cursor(columns[0], columns[1], columns[2], *columns[2:]))
        for gone in self.cursors.keys() - {id_ for id_, *_ in found}:
            self._ended(self.cursors.pop(gone))

    def wiped(self) -> None:
        """The data were removed, or are about to be found removed."""
        if self.stored.wiped():
            self.resets += 1
            for known in (self.cursors, self.accepted, self.shown, self.told, self._tops):
                known.clear()

    def _milliseconds(self) -> int:
        now = int(self._instant().wall * 1000)
        self._latest = max(self._latest, now)
        return now

    def _patient(self) -> int:
        """The time by which a cursor has expired for sure: a recent leap may not be counted."""
        return self._milliseconds() - int(1000 * self._leapt(self.stored.terms.hour / 1000))

    def _stands(self, id_: int, now: Cursor) -> None:
        before = self.cursors.get(id_)
        if before is None:
            self.cursors[id_] = now
            self.shown[now.session, now.channel] = Shown(now.position, bool(now.include_own))
            self.told.pop((now.session, now.channel), None)
            return
        alive = max(before.expires_at, now.expires_at) > self._patient()
        before.expires_at = now.expires_at
        if now.position == before.position:
            return
        require(alive, "an expired cursor moves", before, now.position)
        require(now.position > before.position, "a cursor goes back", before, now.position)
        until = self.until(now.session, now.channel)
        passes = "a cursor passes what was not delivered"
        require(now.position <= until, passes, before, now.position, until)
        before.position = now.position

    def _ended(self, cursor: Cursor) -> None:
        whose = (cursor.session, cursor.channel)
        forgotten = cursor.expires_at + EXPIRY_MARKER_HOURS * self.stored.terms.hour
        known = self.told.pop(whose, None) == cursor.position or whose in self.changing
        old = forgotten <= self._milliseconds()
        require(known or old, "a cursor was ended, and nobody was told", cursor)

    def is_expired(self, cursor: Cursor) -> bool:
        """By the present time."""
        return cursor.expires_at <= self._milliseconds()

    def follows(self, session: str, channel: str) -> bool:
        """Whether a session has a cursor there that has not expired, as far as it was told."""
        if (session, channel) in self.told:
            return False
        return any(
            (each.session, each.channel) == (session, channel) and not self.is_expired(each)
            for each in self.cursors.values()
        )

    def followed(self, session: str, channel: str) -> None:
        """It was answered that a session has a subscription there."""
        self.told.pop((session, channel), None)

    def left(self, session: str, channel: str) -> None:
        """It was answered that a session has no subscription there any more."""
        if not self.follows(session, channel):
            self.shown.pop((session, channel), None)

    def until(self, session: str, channel: str) -> int:
        """How far a session was shown everything, its own messages left out."""
        shown, stream = self.shown[session, channel], self.streams.get(channel, [])
        while shown.until < len(stream):
            seq = shown.until + 1
            row = stream[seq - 1]
            deleted = row.gone and row.memory_id is not None
            if seq not in shown.ahead and not _is_own(session, shown, row) and not deleted:
                break
            shown.ahead.pop(seq, None)
            shown.until = seq
        return shown.until

    # ---- what clients are answered

    def accept(self, message_id: str, channel: str, result: Result) -> None:
        """A send was answered."""
        row = self.rows.get(message_id)
        if row is None and message_id in self.stored.past.values():
            return  # by the bus before the reset
        require(row is not None, "accepted, but not stored", message_id, result)
        assert row is not None
        told = (channel, result["seq"])
        require((row.channel, row.seq) == told, "accepted as something else", row, told)
        self.accepted[message_id] = told
        self._tops[channel] = max(self._tops.get(channel, 0), row.seq)

    def is_accepted(self, message_id: str) -> bool:
        """Whether its sender knows of the last row of that id."""
        row = self.rows.get(message_id)
        return row is not None and self.accepted.get(message_id) == (row.channel, row.seq)

    def tops(self) -> dict[str, int]:
        """The newest position by channel that somebody knows to be accepted."""
        return dict(self._tops)

    def nothing(self, session: str, result: Result, accepted: dict[str, int]) -> None:
        """A recv was answered, to which all this had been accepted before it was called."""
        told = ("messages", "gaps", "expired", "notices", "more")
        if any(result[each] for each in told):
            return
        for channel, seq in accepted.items():
            if not self.follows(session, channel):
                continue
            shown = self.shown[session, channel]
            ahead = self.streams[channel][self.until(session, channel) : seq]
            ahead = [row for row in ahead if not _is_own(session, shown, row) and not row.gone]
            wrong = [row.seq for row in ahead]
            require(not wrong, "a recv found nothing, wrongly", session, channel, wrong)

    def changed(self, memory_id: str, revision: int | None, now: float) -> None:
        """It was answered that a memory has this revision now, or was deleted."""
        memory = self.memories.get(memory_id)
        if memory is None:
            return  # of a bus before
        last = memory.revisions[-1].revision
        assert last is not None
        require(revision is None or revision <= last, "changed, but not stored", memory_id)
        require(revision is not None or memory.deleted, "deleted, but still there", memory_id)
        lowest = last + 1 if revision is None else revision
        if lowest > memory.answered:
            memory.answered, memory.answered_at = lowest, now

    def obsolete(self, message: Message) -> float | None:
        """Since when everybody may know that this has been replaced."""
        memory = self.memories.get(message.get("memory_id", ""))
        if memory is None or message["revision"] >= memory.answered:
            return None
        return memory.answered_at

    def is_current(self, row: Row) -> bool:
        """Whether searches have to find it."""
        if row.memory_id is None:
            return not row.gone
        memory = self.memories.get(row.memory_id)
        return memory is not None and not memory.deleted and memory.revisions[-1] is row

    def is_of_the_past(self, began: float) -> bool:
        """Whether what was asked at a time may have been answered by a bus before a reset."""
        return self.stored.reset_at is not None and began <= self.stored.reset_at

    def found(self, message: Message, began: float) -> Row | None:
        """A message was read back that was asked for at a time: it is stored so, and current. None:
        it is of a bus before."""
        if self.is_of_the_past(began) and self.stored.is_past(message):
            return None
        row = self.require_stored(message)
        since = self.obsolete(message)
        require(since is None or since >= began, "obsolete, and read", message, since, began)
        return row

    def require_stored(self, message: Message) -> Row:
        """The row of a message that was shown."""
        stream = self.streams.get(message["channel"], [])
        require(message["seq"] <= len(stream), "shown, but not stored", message)
        row = stream[message["seq"] - 1]
        if row.memory_id is not None:
            require(message.get("memory_id") == row.memory_id, "another memory", row, message)
            row = self.memories[row.memory_id].revisions[message["revision"] - 1]
        require(message == msgspec.json.decode(row.envelope), "shown otherwise", row, message)
        return row

    # ---- what clients are shown

    def show(self, handed: Handed, result: Result) -> None:
        """A recv result was handed off."""
        if "error" in result:
            return
        messages, gaps = result["messages"], list(result["gaps"])
        if self.is_of_the_past(handed.connected) or handed.connected == float("inf"):
            messages = [each for each in messages if not self.stored.is_past(each)]
            gaps = [gap for gap in gaps if self._is_possible(gap)]
        for message in messages:
            before = [gap for gap in gaps if gap["channel"] == message["channel"]]
            for gap in before:
                if gap["resumed_at_seq"] <= message["seq"]:
                    gaps.remove(gap)
                    self._skip(handed, gap)
            self._show(handed, message)
            told = self.obsolete(message)
            now = self._instant().monotonic
            late = told is not None and handed.attentive < told < now - UNDER_WAY
            require(not late, "obsolete, and shown", handed.session, message, told)
        for gap in gaps:
            self._skip(handed, gap)
        for farewell in result["expired"]:
            self._farewell(handed, farewell)

    def _is_possible(self, gap: Message) -> bool:
        """Whether it can be of this bus, and not of one before."""
        stream = self.streams.get(gap["channel"], [])
        within = stream[gap["after_seq"] : gap["resumed_at_seq"] - 1]
        whole = len(within) == gap["resumed_at_seq"] - 1 - gap["after_seq"]
        return whole and all(row.gone for row in within)

    def _farewell(self, handed: Handed, farewell: Message) -> None:
        whose = (handed.session, farewell["channel"])
        self.expired += 1
        self.told[whose] = farewell["position"]
        for cursor in self.cursors.values():
            if (cursor.session, cursor.channel) == whose and whose not in self.changing:
                if self.is_of_the_past(handed.connected):
                    continue
                place = farewell["position"]
                was = cursor.expires_at <= self._latest
                require(
                    place == cursor.position and was, "told that it expired, wrongly", cursor, place
                )

    def _skip(self, handed: Handed, gap: Message) -> None:
        """A gap is exact: what it leaves out is gone, and counted."""
        session, channel = handed.session, gap["channel"]
        after, resumed = gap["after_seq"], gap["resumed_at_seq"]
        shown, stream = self._begin(handed, channel), self.streams.get(channel, [])
        until = self.until(session, channel)
        passed = [row.seq for row in stream[until:after] if _is_due(session, shown, row)]
        require(not passed, "passed over before a gap", session, passed, gap)
        require(after >= shown.last, "a gap told twice", session, shown.last, gap)
        within = [row for row in stream[after : resumed - 1] if not _is_own(session, shown, row)]
        present = [row.seq for row in within if not row.gone]
        require(not present, "a gap, but it is there", session, present, gap)
        unseen = [row.seq for row in within if row.seq not in shown.seen]
        require(len(unseen) == gap["lost"], "a gap counted wrongly", session, unseen, gap)
        shown.last = max(shown.last, resumed - 1)
        self.lost += len(unseen)
        for row in within:
            if row.seq > until:
                shown.ahead[row.seq] = None

    def _begin(self, handed: Handed, channel: str) -> Shown:
        shown = self.shown.get((handed.session, channel))
        require(shown is not None, "shown, but not subscribed to", handed.session, channel)
        assert shown is not None
        if shown.life != handed.life:
            shown.life, shown.last, shown.seen = handed.life, 0, {}
        return shown

    def _show(self, handed: Handed, message: Message) -> None:
        session, channel, seq = handed.session, message["channel"], message["seq"]
        shown, stream = self._begin(handed, channel), self.streams.get(channel, [])
        self.require_stored(message)
        row = stream[seq - 1]
        require(not _is_own(session, shown, row), "shown to whoever sent it", row)
        require(seq > shown.last, "shown twice, or out of order", session, shown.last, row)
        until = self.until(session, channel)
        rows = stream[until : seq - 1]
        passed = [each.seq for each in rows if _is_due(session, shown, each)]
        require(not passed, "passed over", session, passed, row)
        shown.last = seq
        shown.seen[seq] = None
        if seq > until:
            shown.ahead[seq] = None

    def missing(self, *, expired: bool = True) -> list[tuple[str, str, int]]:
        """Whoever is still to be shown something, or to have it reported: session, channel, and
        how far the cursor is, own messages left out; or (`expired`) to be told that it expired."""
        found = []
        for cursor in self.cursors.values():
            whose = (cursor.session, cursor.channel)
            if self.is_expired(cursor):
                if expired:
                    found.append((*whose, cursor.position))
                continue
            ahead = self.streams.get(cursor.channel, [])[cursor.position :]
            shown = self.shown[whose]
            if any(not _is_own(cursor.session, shown, row) and not row.gone for row in ahead):
                found.append((*whose, cursor.position))
        return found


def _is_own(session: str, shown: Shown, row: Row) -> bool:
    """Whether a message is not for a session because it is its own."""
    return row.session == session and not shown.include_own


def _is_due(session: str, shown: Shown, row: Row) -> bool:
    """Whether a message is to be shown, or told of as lost."""
    return not _is_own(session, shown, row) and not (row.gone and row.memory_id is not None)
