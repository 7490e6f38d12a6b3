"""What became visible lately, in blocks: all who are handed a block share its bytes, and who has
fallen behind a little is handed the next ones from here instead of by a read of its own."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final

from agentbus.config import KIB, MIB
from agentbus.model.ids import ChannelId, Seq
from agentbus.model.stream import Entry, Run

KEPT_BYTES: Final = 8 * MIB
"""Envelopes that are kept of all channels together, more than a window of the default takes; as
much again where they were joined."""

BLOCK_BYTES: Final = 256 * KIB
"""Envelopes of one block, unless a single one is larger."""

_last = attrgetter("last")


class Block(Run):
    """Messages that are handed on together wherever a window has room for all of them."""

    __slots__ = ("_body",)

    def __init__(self, entries: Sequence[Entry]) -> None:
        super().__init__(entries)
        self._body: bytes | None = None

    @property
    def body(self) -> bytes:
        """The envelopes as they stand in a line."""
        if self._body is None:
            self._body = join(self.entries)
        return self._body


def join(entries: Sequence[Entry]) -> bytes:
    """Envelopes as they stand in a line."""
    return b",".join([entry.envelope for entry in entries])


def cut(entries: Sequence[Entry], most: int) -> list[Block]:
    """Blocks of at most so many messages."""
    blocks, start, size = [], 0, 0
    for place, entry in enumerate(entries):
        weight = len(entry.envelope)
        if place - start == most or (place > start and size + weight > BLOCK_BYTES):
            blocks.append(Block(entries[start:place]))
            start, size = place, 0
        size += weight
    blocks.append(Block(entries[start:] if start else entries))
    return blocks


class Recent:
    """The newest blocks of each channel, without a hole; the oldest of all goes first."""

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self._most = most
        self._kept = 0
        self._blocks: dict[ChannelId, deque[Block]] = {}
        self._order: deque[ChannelId] = deque()

    def add(self, channel: ChannelId, blocks: Sequence[Block]) -> None:
        """They are the newest of their channel."""
        kept = self._blocks.setdefault(channel, deque())
        for block in blocks:
            if kept and kept[-1].last + 1 != block.first:
                self._drop(channel)
            if not block.consecutive:
                continue
            kept.append(block)
            self._order.append(channel)
            self._kept += block.bytes
        while self._kept > self._most:
            self._drop_oldest()

    def after(self, channel: ChannelId, position: Seq) -> Iterator[Block]:
        """The block that holds what follows on a position, and those after it; nothing where that
        is not kept."""
        kept = self._blocks.get(channel)
        if kept and kept[0].first <= position + 1:
            for place in range(bisect_left(kept, position + 1, key=_last), len(kept)):
                yield kept[place]

    def forget(self) -> None:
        """Everything."""
        self._blocks.clear()
        self._order.clear()
        self._kept = 0

    def _drop(self, channel: ChannelId) -> None:
        kept = self._blocks[channel]
        self._kept -= sum(block.bytes for block in kept)
        kept.clear()
        self._order = deque(each for each in self._order if each != channel)

    def _drop_oldest(self) -> None:
        channel = self._order.popleft()
        kept = self._blocks[channel]
        self._kept -= kept.popleft().bytes
        if not kept:
            del self._blocks[channel]
