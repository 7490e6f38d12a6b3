"""Memories that were changed and are not visible so yet: what Redis serves of them is obsolete.

A change counts until its commit is visible, and beyond that for the reads that were begun before,
whose replies may be older. The projector may be ahead of the writer: a change that is visible by
the time it is told of counts for the reads that are under way.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentbus.mirror.read import Entry as Found
from agentbus.model.ids import ChannelId, CommitId, Seq
from agentbus.model.stream import Entry
from agentbus.wire.links import MemoryChanged

Place = tuple[ChannelId, Seq]


class Revisions:
    """The newest change of each memory."""

    def __init__(self) -> None:
        self.newest = CommitId(0)
        """The last commit that changed any."""
        self._changes: dict[Place, MemoryChanged] = {}
        """In the order of their commits."""
        self._late: dict[Place, tuple[MemoryChanged, int]] = {}
        """Visible by now, and the last read that was begun before."""

    def changed(self, change: MemoryChanged, visible: CommitId, last_read: int) -> None:
        """A memory was edited or deleted. `last_read` is the last read that was begun."""
        place = (change.channel_id, change.seq)
        known = self._known(place)
        if known and not _follows(change, known):
            return
        self.newest = max(self.newest, change.commit_id)
        self._changes.pop(place, None)
        self._late.pop(place, None)
        if change.commit_id <= visible:
            self._late[place] = (change, last_read)
        else:
            self._changes[place] = change

    def visible(self, commit: CommitId, last_read: int) -> None:
        """Everything up to a commit is visible to reads after that one."""
        while self._changes:
            place, change = next(iter(self._changes.items()))
            if change.commit_id > commit:
                break
            del self._changes[place]
            self._late[place] = (change, last_read)

    def read(self, oldest_read: int | None) -> None:
        """No read before this one (None: no read at all) is under way any more."""
        while self._late:
            place, (_, last_read) = next(iter(self._late.items()))
            if oldest_read is not None and oldest_read <= last_read:
                break
            del self._late[place]

    def current(self, channel: ChannelId, entries: Sequence[Entry]) -> Sequence[Entry]:
        """The entries as they are now, without those that were deleted."""
        if not (self._changes or self._late):
            return entries
        current = [self._current(channel, entry) for entry in entries]
        return [entry for entry in current if entry is not None]

    def _current(self, channel: ChannelId, entry: Entry) -> Entry | None:
        change = self._known((channel, entry.seq))
        if change is None:
            return entry
        if change.envelope is None:
            return None
        return Found(entry.seq, entry.session_id, change.envelope)

    def _known(self, place: Place) -> MemoryChanged | None:
        if place in self._late:
            return self._late[place][0]
        return self._changes.get(place)


def _follows(change: MemoryChanged, known: MemoryChanged) -> bool:
    """Whether it is the later one; a commit may hold several changes of a memory."""
    return _order(change) > _order(known)


def _order(change: MemoryChanged) -> tuple[CommitId, int, bool]:
    return change.commit_id, change.revision, change.envelope is None
