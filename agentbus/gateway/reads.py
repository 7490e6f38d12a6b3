"""Reading streams: what was asked for finds back to whoever asked, with nothing obsolete in it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from agentbus.gateway.events import ReadStream, StreamRead
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.revisions import Revisions
from agentbus.model.ids import ChannelId, CommitId, Seq
from agentbus.wire.links import MemoryChanged

OnRead = Callable[[StreamRead], None]


class Reads:
    """Those under way, the oldest first."""

    def __init__(self, out: Outbox) -> None:
        self._out = out
        self._readers: dict[int, tuple[ChannelId, OnRead]] = {}
        self._last = 0
        self.revisions = Revisions()

    def read(
        self,
        channel: ChannelId,
        edge: Seq | None,
        bounds: tuple[int, int],
        then: OnRead,
        *,
        forward: bool = True,
    ) -> int:
        """Has a stream read; `bounds` are count and bytes, `then` gets the reply."""
        self._last = ref = self._out.ref()
        self._readers[ref] = (channel, then)
        self._out.effects.append(ReadStream(ref, channel, edge, forward, *bounds))
        return ref

    def was_read(self, reply: StreamRead) -> None:
        """Hands a reply to whoever asked for it."""
        reader = self._readers.pop(reply.ref, None)
        if reader is None:
            return
        channel, then = reader
        entries = self.revisions.current(channel, reply.entries)
        if entries is not reply.entries:
            reply = msgspec.structs.replace(reply, entries=entries)
        self._forget()
        then(reply)

    def changed(self, change: MemoryChanged, visible: CommitId) -> None:
        """A memory is another one from now on, or none."""
        self.revisions.changed(change, visible, self._last)
        self._forget()

    def visible(self, commit: CommitId) -> None:
        """Reads that begin from now on see everything up to this commit."""
        self.revisions.visible(commit, self._last)
        self._forget()

    def _forget(self) -> None:
        self.revisions.read(next(iter(self._readers), None))
