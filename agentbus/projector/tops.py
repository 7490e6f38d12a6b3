"""What each stream holds, counted along with every write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentbus.mirror.read import sent_at
from agentbus.mirror.write import Changes
from agentbus.model.ids import ChannelId, Seq
from agentbus.wire.links import Boundary, ChannelTop, RowInserted

Cut = tuple[ChannelId, Seq, Seq]
"""A channel, its oldest position, and the first that is to stay."""


class _Stream:
    __slots__ = ("count", "newest", "newest_at", "oldest", "top")

    def __init__(self) -> None:
        self.count = 0
        self.oldest = Seq(0)
        self.top = Seq(0)
        self.newest: bytes | None = None
        self.newest_at = ""


class Tops:
    """Exact where nothing is on its way; but of a memory channel whose first or last memory was
    deleted, both ends stay where they were."""

    def __init__(self) -> None:
        self._streams: dict[ChannelId, _Stream] = {}

    def start(self, channels: Iterable[ChannelId]) -> None:
        """These channels, all empty."""
        self._streams = {channel: _Stream() for channel in channels}

    def found(self, top: ChannelTop) -> None:
        """What Redis itself said about a stream."""
        stream = self._stream(top.channel_id)
        stream.count, stream.oldest, stream.top = top.count, top.oldest, top.top
        stream.newest, stream.newest_at = None, top.newest_at

    def changed(self, changes: Changes) -> None:
        """These changes were made; boundaries count as `bounded`."""
        self._add(changes.messages)
        if changes.created or not changes.only_adds:
            self._add(changes.created)
            for row in changes.edited:
                self._stream(row.channel_id).newest = row.envelope
            for gone in changes.deleted:
                self._stream(gone.channel_id).count -= 1
            self.bounded(changes.boundaries)

    def _add(self, rows: Iterable[RowInserted]) -> None:
        streams = self._streams
        for row in rows:
            stream = streams.get(row.channel_id) or self._stream(row.channel_id)
            if not stream.count:
                stream.oldest = row.seq
            stream.count += 1
            stream.top = row.seq
            stream.newest = row.envelope

    def bounded(self, boundaries: Iterable[Boundary]) -> None:
        """Below these positions there is nothing (any more)."""
        for channel, oldest in _begun(boundaries):
            stream = self._stream(channel)
            if oldest > stream.oldest:
                stream.oldest = oldest
                stream.top = max(stream.top, Seq(oldest - 1))
                stream.count = stream.top - oldest + 1

    def below(self, boundaries: Iterable[Boundary]) -> list[Cut]:
        """What must go for these boundaries."""
        found = ((self._streams.get(channel), channel, end) for channel, end in _begun(boundaries))
        return [
            (channel, stream.oldest, end)
            for stream, channel, end in found
            if stream is not None and stream.count and stream.oldest < end
        ]

    def heads(self) -> dict[ChannelId, Seq]:
        """The last position of each channel."""
        return {channel: stream.top for channel, stream in self._streams.items()}

    def all(self) -> list[ChannelTop]:
        """All channels, by number."""
        return self.of(self._streams)

    def of(self, channels: Iterable[ChannelId]) -> list[ChannelTop]:
        """Some channels, by number."""
        return [self._top(channel) for channel in sorted(channels)]

    def _stream(self, channel: ChannelId) -> _Stream:
        stream = self._streams.get(channel)
        if stream is None:
            stream = self._streams[channel] = _Stream()
        return stream

    def _top(self, channel: ChannelId) -> ChannelTop:
        stream = self._stream(channel)
        if stream.newest is not None:
            stream.newest_at, stream.newest = sent_at(stream.newest), None
        return ChannelTop(channel, stream.count, stream.oldest, stream.top, stream.newest_at)


def _begun(boundaries: Iterable[Boundary]) -> Iterator[tuple[ChannelId, Seq]]:
    """Those of channels that do not begin at the beginning any more."""
    return ((each.channel_id, each.oldest) for each in boundaries if each.oldest > 1)
