"""The bus database as the projector reads it, in memory: what commits did, and what is left."""

from __future__ import annotations

import msgspec

from agentbus.mirror import keys
from agentbus.model.channel import ChannelInfo
from agentbus.model.ids import ChannelId, CommitId, Seq, SessionId
from agentbus.store.read import Events, Head
from agentbus.wire.links import Boundary, Committed, RowInserted, Tombstoned

MEMORY_CHANNELS = range(50, 60)
"""Numbers of channels that are of this kind."""


def envelope(text: str) -> bytes:
    """As much of one as projector and index look at."""
    return msgspec.json.encode(
        {
            "message_id": "m",
            "sender": "Sam",
            "agent": "sam",
            "thread": "m",
            "content": text,
            "sent_at": f"2026-11-30T16:40:27.{len(text):03}Z",
        }
    )


class MemorySource:
    """Commits in order, each with its rows; tombstones by memory and revision; where ordinary
    channels begin."""

    def __init__(self) -> None:
        self.instance = "bus-1"
        self.schema = 1
        self.purge_floor = CommitId(0)
        self.commits: list[list[RowInserted]] = []
        self.tombstones: dict[tuple[str, int], tuple[CommitId, Tombstoned]] = {}
        self.oldest: dict[ChannelId, Seq] = {}
        self.empty_channels: list[ChannelId] = []
        self.error: Exception | None = None
        self.opened = 0
        self.closed = False
        self._tops: dict[ChannelId, Seq] = {}
        self._memories = 0

    # ---- what happens

    @property
    def newest(self) -> CommitId:
        """Number of the last commit."""
        return CommitId(len(self.commits))

    def commit(self, *channels: int, text: str = "x", session: int = 7) -> Committed:
        """One message, or one memory, in each of these channels, as the writer would tell of it."""
        return self.transact([("add", channel) for channel in channels], text, session)

    def edit(self, memory_id: str, text: str = "edited") -> Committed:
        """A new revision."""
        return self.transact([("edit", memory_id)], text)

    def delete(self, memory_id: str) -> Committed:
        """Its last revision is tombstoned."""
        return self.transact([("delete", memory_id)])

    def transact(
        self, operations: list[tuple[str, int | str]], text: str = "x", session: int = 7
    ) -> Committed:
        """Several operations in one commit: `add` to a channel, `edit` or `delete` a memory (one
        that was deleted by then: nothing)."""
        self.commits.append([])
        for operation, what in operations:
            if operation == "add":
                self._add(ChannelId(int(what)), text, SessionId(session))
            else:
                self._mutate(operation, str(what), text)
        return self._told()

    def _add(self, channel: ChannelId, text: str, session: SessionId) -> None:
        seq = self._tops[channel] = Seq(self._tops.get(channel, 0) + 1)
        memory = channel in MEMORY_CHANNELS
        self._memories += memory
        name = f"memory-{self._memories}" if memory else None
        content = envelope(text if name is None else f"{name} {text}")
        row = RowInserted(channel, seq, session, content, name, 1 if memory else None)
        self.commits[-1].append(row)

    def _mutate(self, operation: str, memory_id: str, text: str) -> None:
        current = self.current().get(memory_id)
        if current is None:
            return
        assert current.revision is not None
        gone = Tombstoned(current.channel_id, memory_id, current.seq, current.revision)
        self.tombstones[memory_id, current.revision] = self.newest, gone
        if operation == "edit":
            number = current.revision + 1
            content = envelope(f"{memory_id} {text} {number}")
            self.commits[-1].append(
                msgspec.structs.replace(current, envelope=content, revision=number)
            )

    def _told(self) -> Committed:
        """One row for each memory that is left, at the place of its first."""
        current = self.current()
        rows: dict[object, RowInserted] = {}
        for row in self.commits[-1]:
            if row.memory_id is None:
                rows[row.channel_id, row.seq] = row
            elif row.memory_id in current:
                rows[row.memory_id] = current[row.memory_id]
        tombstones = [gone for commit, gone in self.tombstones.values() if commit == self.newest]
        return Committed(CommitId(self.newest - 1), self.newest, list(rows.values()), tombstones)

    def evict(self, channel: int, oldest: int) -> Boundary:
        """An ordinary channel begins there from now on, as far as it goes."""
        identity = ChannelId(channel)
        last = self._tops.get(identity, Seq(0))
        begins = max(self.oldest.get(identity, 1), min(oldest, last + 1))
        self.oldest[identity] = Seq(begins)
        return Boundary(identity, Seq(begins))

    def purge(self) -> None:
        """Forgets everything that was tombstoned."""
        for memory_id, revision in self.tombstones:
            for rows in self.commits:
                rows[:] = [
                    row for row in rows if (row.memory_id, row.revision) != (memory_id, revision)
                ]
        floor = max((commit for commit, _ in self.tombstones.values()), default=self.purge_floor)
        self.purge_floor = CommitId(floor)
        self.tombstones.clear()

    def forget_last_commit(self) -> None:
        """As if it had never been."""
        for row in self.commits.pop():
            self._tops[row.channel_id] = Seq(self._tops[row.channel_id] - 1)

    def become(self, instance: str) -> None:
        """Another bus, with one commit of which nothing is left."""
        self.instance = instance
        self.commits, self.tombstones, self.oldest = [[]], {}, {}
        self._tops = {}

    # ---- what is there

    def current(self, up_to: int | None = None) -> dict[str, RowInserted]:
        """The current revisions, now or as of a commit, by memory."""
        limit = self.newest if up_to is None else up_to
        found: dict[str, RowInserted] = {}
        for row in (row for rows in self.commits[:limit] for row in rows):
            if row.memory_id is not None and row.revision is not None:
                gone = self.tombstones.get((row.memory_id, row.revision))
                if gone is None or gone[0] > limit:
                    found[row.memory_id] = row
        return found

    def expected(self) -> dict[bytes, list[tuple[int, bytes]]]:
        """What the streams, with the contents of memories, must hold."""
        streams: dict[bytes, list[tuple[int, bytes]]] = {}
        ordinary = [row for row in self._rows() if row.memory_id is None and self._is_left(row)]
        for row in (*ordinary, *self.current().values()):
            streams.setdefault(keys.stream(row.channel_id), []).append((row.seq, row.envelope))
        return {key: sorted(found) for key, found in streams.items()}

    def _rows(self, up_to: int | None = None) -> list[RowInserted]:
        return [row for rows in self.commits[:up_to] for row in rows]

    def _is_left(self, row: RowInserted) -> bool:
        return row.seq >= self.oldest.get(row.channel_id, 1)

    def _is_told(self, row: RowInserted) -> bool:
        if row.memory_id is None:
            return self._is_left(row)
        return row.revision == 1 or (row.memory_id, row.revision) not in self.tombstones

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error

    # ---- as `Source`

    def reopen(self) -> None:
        """Counts."""
        self.opened += 1

    def close(self) -> None:
        """Remembers."""
        self.closed = True

    def head(self) -> Head:
        """As `Source`."""
        self._fail()
        return Head(self.instance, self.schema, self.newest, self.purge_floor)

    def events_after(self, commit_id: CommitId, limit_rows: int, limit_bytes: int) -> Events | None:
        """As `Source`."""
        self._fail()
        if commit_id >= self.newest:
            return None
        rows: list[RowInserted] = []
        deleted: list[Tombstoned] = []
        reached = commit_id
        for number in range(commit_id + 1, self.newest + 1):
            added = [row for row in self.commits[number - 1] if self._is_told(row)]
            gone = self._deleted_by(number)
            size = len(rows) + len(deleted) + len(added) + len(gone)
            if reached > commit_id and size > limit_rows:
                break
            rows, deleted, reached = [*rows, *added], [*deleted, *gone], CommitId(number)
        return Events(rows, deleted, reached, self.purge_floor)

    def _deleted_by(self, number: int) -> list[Tombstoned]:
        revisions = {(row.memory_id, row.revision) for row in self._rows()}
        return [
            gone
            for commit, gone in self.tombstones.values()
            if commit == number and (gone.memory_id, gone.revision + 1) not in revisions
        ]

    def channel_infos(self) -> list[ChannelInfo]:
        """As `Source`."""
        self._fail()
        return [
            ChannelInfo(
                channel,
                f"c{channel}",
                "memory" if channel in MEMORY_CHANNELS else "ordinary",
                self._tops.get(channel, Seq(0)),
            )
            for channel in sorted({*self._tops, *self.empty_channels})
        ]

    def channel_rows(
        self, channel: ChannelId, position: Seq, up_to: CommitId, limit_rows: int, limit_bytes: int
    ) -> list[RowInserted]:
        """As `Source`."""
        self._fail()
        return [
            row
            for row in self._rows(up_to)
            if row.channel_id == channel and row.seq > position and self._is_left(row)
        ][:limit_rows]

    def memory_rows(
        self, channel: ChannelId, position: Seq, up_to: CommitId, limit_rows: int, limit_bytes: int
    ) -> list[RowInserted]:
        """As `Source`."""
        self._fail()
        rows = [row for row in self.current(up_to).values() if row.channel_id == channel]
        return sorted((row for row in rows if row.seq > position), key=lambda row: row.seq)[
            :limit_rows
        ]

    def memory_extent(self, channel: ChannelId, up_to: CommitId) -> tuple[int, Seq, Seq]:
        """As `Source`."""
        found = [row.seq for row in self.memory_rows(channel, Seq(0), up_to, 10**9, 10**9)]
        return len(found), min(found, default=Seq(0)), max(found, default=Seq(0))

    def boundaries(self) -> list[Boundary]:
        """As `Source`."""
        self._fail()
        return [
            Boundary(channel, self.oldest.get(channel, Seq(1)))
            for channel in sorted(self._tops)
            if channel not in MEMORY_CHANNELS
        ]
