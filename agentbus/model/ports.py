"""Small protocols through which pure code reaches what is not pure."""

from __future__ import annotations

from typing import Protocol

import msgspec


class Instant(msgspec.Struct, frozen=True):
    """One reading of both clocks, handed to cores with every event.

    `monotonic` is for durations and deadlines, in seconds from an arbitrary start;
    `wall` is seconds since 1970 in UTC and may jump.
    """

    monotonic: float
    wall: float


class Clock(Protocol):
    """Where a shell takes the instants from."""

    def now(self) -> Instant:
        """Both clocks, read now."""
        ...


class Tokens(Protocol):
    """Source of unguessable, unique names; seeded in simulations."""

    def token(self) -> str:
        """A fresh string of 32 hexadecimal digits."""
        ...
