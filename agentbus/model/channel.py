"""Channels: named, of a kind that never changes."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from agentbus.model.ids import ChannelId, Seq

Kind = Literal["ordinary", "memory"]

READY_MADE: Final[tuple[tuple[str, Kind], ...]] = (("general", "ordinary"), ("memory", "memory"))
"""Channels of a new or reset bus, and the ones a session without a project file joins."""


class ChannelInfo(msgspec.Struct, frozen=True, array_like=True):
    """A channel as the processes tell each other about it; `last_seq` 0 means empty."""

    id: ChannelId
    name: str
    kind: Kind
    last_seq: Seq
