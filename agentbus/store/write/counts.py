"""How many messages follow a cursor, exactly: from the index of positions alone."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Final

import msgspec

from agentbus.model.ids import ChannelId, Seq, SessionId
from agentbus.sqlite import Connection

COUNT_LIVE: Final = """
    SELECT count(*) FROM messages INDEXED BY messages_by_position
    WHERE channel_id = ? AND seq > ? AND seq <= ? AND tombstone = 0
"""
"""The live messages after one position and up to another."""

SELECT_OWN: Final = """
    SELECT session_id, seq FROM messages INDEXED BY messages_by_position
    WHERE channel_id = ? AND seq > ? AND tombstone = 0
        AND session_id IN (SELECT value FROM json_each(?))
"""
"""Where the live messages of some sessions are, after a position."""

_END: Final = Seq(2**62)


class Standing(msgspec.Struct, frozen=True):
    """A cursor to count from; `own` is the session whose messages are left out, 0 for none."""

    channel_id: ChannelId
    position: Seq
    own: SessionId


class Counts:
    """Numbers of messages."""

    def __init__(self, connection: Connection) -> None:
        self._execute = connection.execute

    def undelivered(self, standings: list[Standing]) -> list[int]:
        """For each, the live messages after it. Looks through each channel twice at most."""
        counts: dict[Standing, int] = {}
        order = sorted(set(standings), key=lambda standing: standing.channel_id)
        for channel, group in itertools.groupby(order, lambda standing: standing.channel_id):
            counts |= self._of_channel(channel, list(group))
        return [counts[standing] for standing in standings]

    def _of_channel(self, channel: ChannelId, group: list[Standing]) -> dict[Standing, int]:
        after = self._after(channel, {standing.position for standing in group})
        own = self._own(channel, group)
        return {standing: after[standing.position] - own.get(standing, 0) for standing in group}

    def _after(self, channel: ChannelId, positions: Iterable[Seq]) -> dict[Seq, int]:
        after: dict[Seq, int] = {}
        total, end = 0, _END
        for position in sorted(positions, reverse=True):
            total += self._execute(COUNT_LIVE, (channel, position, end)).fetchone()[0]
            after[position], end = total, position
        return after

    def _own(self, channel: ChannelId, group: list[Standing]) -> dict[Standing, int]:
        owners: dict[SessionId, list[Standing]] = {}
        for standing in group:
            if standing.own:
                owners.setdefault(standing.own, []).append(standing)
        if not owners:
            return {}
        lowest = min(standing.position for standing in group if standing.own)
        counts: dict[Standing, int] = {}
        for session, seq in self._execute(SELECT_OWN, (channel, lowest, json.dumps([*owners]))):
            for standing in owners[session]:
                if seq > standing.position:
                    counts[standing] = counts.get(standing, 0) + 1
        return counts
