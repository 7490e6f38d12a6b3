"""Every channel, what its stream holds, and who is fed from it."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable

from agentbus.errors import NotFound
from agentbus.gateway.connections import Feed
from agentbus.mirror.read import sent_at
from agentbus.model.channel import ChannelInfo, Kind
from agentbus.model.ids import ChannelId, Seq, SubscriptionId
from agentbus.model.stream import Stream
from agentbus.wire.links import ChannelTop, VisibleMessage


class Channel:
    """A channel; without a name as long as only the projector has spoken of it."""

    __slots__ = ("_newest", "_newest_at", "feeds", "id", "kind", "messages", "name", "stream")

    def __init__(self, identity: ChannelId) -> None:
        self.id = identity
        self.name = ""
        self.kind: Kind = "ordinary"
        self.stream = Stream()
        self.messages = 0
        """Entries of the stream: what was deleted counts until that is visible."""
        self.feeds: dict[SubscriptionId, Feed] = {}
        self._newest: bytes | None = None
        self._newest_at = ""

    @property
    def info(self) -> ChannelInfo:
        """As the processes tell each other about it."""
        last = max(self.stream.top, self.stream.stored)
        return ChannelInfo(self.id, self.name, self.kind, Seq(last))

    def survey(self, top: ChannelTop) -> None:
        """What the projection holds."""
        stream = self.stream
        self.messages = top.count
        stream.top = max(stream.top, top.top)
        stream.oldest = max(stream.oldest, top.oldest)
        if not top.count:
            self.nothing_below(stream.top)
        self._newest, self._newest_at = None, top.newest_at

    def nothing_below(self, position: Seq) -> None:
        """The stream is empty, and holds nothing up to a position that the database has given."""
        if position and not self.messages:
            self.stream.top = max(self.stream.top, position)
            self.stream.oldest = max(self.stream.oldest, Seq(position + 1))

    def grow(self, messages: list[VisibleMessage]) -> None:
        """Messages became visible."""
        last = messages[-1]
        if last.seq > self.stream.top:
            if not self.messages:
                self.stream.oldest = messages[0].seq
            self.stream.top = last.seq
            self.messages += len(messages)
            self._newest = last.envelope

    @property
    def newest_at(self) -> str | None:
        """When its newest message was sent."""
        if self._newest is not None:
            self._newest_at = sent_at(self._newest)
            self._newest = None
        return self._newest_at or None


class Channels:
    """The channels by id and by name."""

    def __init__(self) -> None:
        self._by_id: dict[ChannelId, Channel] = {}
        self._by_name: dict[str, Channel] = {}
        self._names: list[str] = []

    def by_id(self, identity: ChannelId) -> Channel:
        """The channel, even if nothing else is known of it: the two links are not in step."""
        channel = self._by_id.get(identity)
        if channel is None:
            channel = self._by_id[identity] = Channel(identity)
        return channel

    def knows(self, name: str) -> bool:
        """Whether there is a channel of that name."""
        return name in self._by_name

    def named(self, name: str) -> Channel:
        """Raises NotFound."""
        channel = self._by_name.get(name)
        if channel is None:
            raise NotFound(f"there is no channel {name!r}; `list_channels` tells which there are")
        return channel

    def opened(self, info: ChannelInfo) -> None:
        """The writer has told of a channel."""
        channel = self.by_id(info.id)
        channel.stream.stored = max(channel.stream.stored, info.last_seq)
        if not channel.name:
            channel.name, channel.kind = info.name, info.kind
            channel.stream.dense = info.kind == "ordinary"
            self._by_name[info.name] = channel
            insort(self._names, info.name)

    def surveyed(self, tops: Iterable[ChannelTop]) -> None:
        """The projector has told what these streams hold."""
        for top in tops:
            self.by_id(top.channel_id).survey(top)

    def emptied(self) -> None:
        """Everything that the writer told of at its welcome is in the streams, or gone."""
        for channel in self._by_id.values():
            channel.nothing_below(channel.stream.stored)

    def all(self) -> list[Channel]:
        """Those with names, by name."""
        return [self._by_name[name] for name in self._names]

    def page(self, after: str | None, limit: int) -> tuple[list[Channel], str | None]:
        """Channels in the order of their names, and where the next page starts, if there is one."""
        start = bisect_right(self._names, after) if after is not None else 0
        names = self._names[start : start + limit]
        more = start + limit < len(self._names)
        return [self._by_name[name] for name in names], names[-1] if more else None
