"""The row about the bus, and its channels."""

from __future__ import annotations

from typing import Final

import msgspec

from agentbus.model.channel import READY_MADE, ChannelInfo, Kind
from agentbus.model.ids import ChannelId, CommitId
from agentbus.sqlite import Connection
from agentbus.store.read import CHANNELS
from agentbus.store.write.row_id import row_id

SELECT_META: Final = """
    SELECT instance, incarnation, last_id, commit_id, sent_at, messages, memories, tombstones,
           receipts, evicted, logical_bytes
    FROM meta WHERE id = 1
"""
"""The one row about the bus; none in a file that was just made."""

INSERT_META: Final = "INSERT INTO meta (id, instance, created_at) VALUES (1, ?, ?)"
"""Makes it a bus instance."""

NEXT_INCARNATION: Final = "UPDATE meta SET incarnation = incarnation + 1 WHERE id = 1"
"""A gateway has started."""

INSERT_CHANNEL: Final = "INSERT INTO channels (name, kind, created_at) VALUES (?, ?, ?)"
"""Makes an empty channel."""


class Meta(msgspec.Struct, frozen=True):
    """The row about the bus; counts are of rows, sizes in bytes."""

    instance: str
    incarnation: int
    last_id: int
    commit_id: CommitId
    sent_at: int
    messages: int
    memories: int
    tombstones: int
    receipts: int
    evicted: int
    logical_bytes: int


class Bus:
    """Instance, incarnation, channels."""

    def __init__(self, connection: Connection) -> None:
        self._execute = connection.execute

    def found(self, instance: str, now: int) -> None:
        """Makes a new bus with the ready-made channels, where there is none."""
        if self._execute(SELECT_META).fetchone() is None:
            self._execute(INSERT_META, (instance, now))
            for name, kind in READY_MADE:
                self._execute(INSERT_CHANNEL, (name, kind, now))

    def meta(self) -> Meta:
        """The row about the bus."""
        return Meta(*self._execute(SELECT_META).fetchone())

    def next_incarnation(self) -> int:
        """The number of a new gateway."""
        self._execute(NEXT_INCARNATION)
        return self.meta().incarnation

    def channels(self) -> list[ChannelInfo]:
        """Every channel, oldest first."""
        return [ChannelInfo(*row) for row in self._execute(CHANNELS)]

    def create_channel(self, name: str, kind: Kind, now: int) -> ChannelId:
        """A new, empty channel; its name must be free."""
        return ChannelId(row_id(self._execute(INSERT_CHANNEL, (name, kind, now))))
