"""What the supervisor remembers about Redis from one server to the next."""

from __future__ import annotations

from typing import Final

from agentbus.errors import RedisIncompatible, Unavailable
from agentbus.wire.error_codes import Failure, to_failure

HELD_LIMIT: Final = 60.0
"""Seconds for which a server from before may take to end: longer than writing a snapshot."""

HARMLESS: Final = frozenset({0, -9, -15})
"""Ends that say nothing against the snapshot; any other may be the snapshot's fault."""

OUTSIDE: Final = (
    "another program ends it, or the system has no memory for it; end that program or make room, "
    "then try again"
)


class RedisCare:
    """A snapshot is only kept while nothing speaks against it: SQLite can make another."""

    def __init__(self) -> None:
        self.keep_snapshot = True
        self.complaint: Failure | None = None
        """Why the last server was replaced, when that was for what it is."""
        self._unfit = False
        self._outside = True
        self._held_since: float | None = None

    def started(self) -> None:
        """A new server runs, on what was to be kept."""
        self.keep_snapshot = True
        self._held_since = None

    def ended(self, status: int, *, condemned: bool) -> None:
        """A server ended, with an exit code or minus a signal; `condemned` by us."""
        self.keep_snapshot = self.keep_snapshot and status in HARMLESS
        self._outside = status in HARMLESS and not condemned
        if not self._unfit:
            self.complaint = None
        self._unfit = False

    def unfit(self, failure: Failure) -> None:
        """The projector wants another server."""
        self.keep_snapshot = False
        self._unfit = True
        self.complaint = failure

    def verdict(self, text: str) -> Failure:
        """What servers that keep dying are called; `text` tells how they did. One that others end,
        or that cannot be started for want of something, may be a good one."""
        if self.complaint is not None:
            return self.complaint
        if self._outside:
            return to_failure(Unavailable(f"{text}; {OUTSIDE}"))
        return to_failure(RedisIncompatible(text))

    def held(self, now: float) -> float:
        """Seconds since a server from before was first found to be in the way."""
        if self._held_since is None:
            self._held_since = now
        return now - self._held_since
