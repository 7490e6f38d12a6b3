"""Live projection: commits that wait to be written, and what the streams hold."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

import msgspec

from agentbus.config import MIB
from agentbus.mirror.read import sent_at
from agentbus.model.ids import ChannelId, CommitId, Seq
from agentbus.wire.links import ChannelTop, Committed, RowInserted

MERGED_ROWS: Final = 256
MERGED_BYTES: Final = 4 * MIB


class Merged(msgspec.Struct, frozen=True):
    """The rows of one or several commits; `commit_id` is the last of these."""

    rows: list[RowInserted]
    commit_id: CommitId


class Backlog:
    """Commits that the writer told of, in a chain without a missing link."""

    def __init__(self) -> None:
        self._waiting: deque[Committed] = deque()
        self._newest = CommitId(0)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def start(self, commit_id: CommitId) -> None:
        """Forgets what waits; the chain goes on after this commit."""
        self._waiting.clear()
        self._newest = commit_id

    def add(self, committed: Committed) -> bool:
        """False: there is a commit between this one and the chain, which only the database has.

        What the chain has already is passed over.
        """
        if committed.commit_id <= self._newest:
            return True
        if committed.previous != self._newest:
            return False
        self._waiting.append(committed)
        self._newest = committed.commit_id
        return True

    def merge(self) -> Merged | None:
        """Takes as many commits as fit one transaction, at least one; None: nothing waits."""
        waiting = self._waiting
        if not waiting:
            return None
        first = waiting.popleft()
        if not waiting:
            return Merged(first.rows, first.commit_id)
        rows, commit_id = list(first.rows), first.commit_id
        size = _bytes(rows)
        while waiting:
            following = waiting[0]
            size += _bytes(following.rows)
            if len(rows) + len(following.rows) > MERGED_ROWS or size > MERGED_BYTES:
                break
            rows += following.rows
            commit_id = following.commit_id
            waiting.popleft()
        return Merged(rows, commit_id)


def _bytes(rows: Iterable[RowInserted]) -> int:
    return sum(len(row.envelope) for row in rows)


class _Stream:
    __slots__ = ("count", "newest", "newest_at", "oldest", "top")

    def __init__(self) -> None:
        self.count = 0
        self.oldest = Seq(0)
        self.top = Seq(0)
        self.newest: bytes | None = None
        self.newest_at = ""


class Tops:
    """What each stream holds, counted along with every write."""

    def __init__(self) -> None:
        self._streams: dict[ChannelId, _Stream] = {}

    def start(self, channels: Iterable[ChannelId]) -> None:
        """These channels, all empty."""
        self._streams = {channel: _Stream() for channel in channels}

    def found(self, top: ChannelTop) -> None:
        """What Redis itself said about a stream."""
        stream = _Stream()
        stream.count, stream.oldest, stream.top = top.count, top.oldest, top.top
        stream.newest_at = top.newest_at
        self._streams[top.channel_id] = stream

    def add(self, rows: Iterable[RowInserted]) -> None:
        """These rows were added, in the order of each stream."""
        streams = self._streams
        for row in rows:
            stream = streams.get(row.channel_id)
            if stream is None:
                stream = streams[row.channel_id] = _Stream()
            if not stream.count:
                stream.oldest = row.seq
            stream.count += 1
            stream.top = row.seq
            stream.newest = row.envelope

    def list(self) -> list[ChannelTop]:
        """All channels, by number."""
        return [self._top(channel) for channel in sorted(self._streams)]

    def _top(self, channel: ChannelId) -> ChannelTop:
        stream = self._streams[channel]
        if stream.newest is not None:
            stream.newest_at, stream.newest = sent_at(stream.newest), None
        return ChannelTop(channel, stream.count, stream.oldest, stream.top, stream.newest_at)
