"""What shells tell cores about links, and what cores ask of shells.

Every core has `handle(event, now: Instant) -> list[effect]`. These are the events and effects all
of them share; each core adds its own (a line from an adapter, a reply from Redis) in its `core`
module and closes the union there.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Opened(msgspec.Struct, frozen=True):
    """A link is there and empty: at start, and again after its peer was replaced."""

    link: str


class Closed(msgspec.Struct, frozen=True):
    """The peer of a link is gone; everything it wrote has been received before this."""

    link: str


class Received(msgspec.Struct, frozen=True):
    """One message from a link's peer (`link` is `control` for the supervisor's)."""

    link: str
    message: Any


class TurnEnded(msgspec.Struct, frozen=True):
    """Everything readable at the moment has been handed over: the time to act on batches."""


class Woke(msgspec.Struct, frozen=True):
    """A time asked for by `WakeAt` has come; may come early or twice."""


class Send(msgspec.Struct, frozen=True, gc=False):
    """Write a message to a link. Never blocks; dropped where the link is closed."""

    link: str
    message: Any


class WakeAt(msgspec.Struct, frozen=True):
    """Deliver `Woke` at this monotonic time; a later `WakeAt` replaces an earlier one."""

    when: float


class Exit(msgspec.Struct, frozen=True):
    """End the process with this exit code, after what was sent has been written."""

    code: int


class Note(msgspec.Struct, frozen=True):
    """A line for the log; fields hold no message contents."""

    level: Literal["info", "warn", "error"]
    action: str
    fields: dict[str, Any]
