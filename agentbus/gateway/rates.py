"""Rates of a session: messages and bytes a second, with a burst of one second."""

from __future__ import annotations

import math

from agentbus.config import KIB, Settings
from agentbus.model.ids import SessionId


class Tokens:
    """A token bucket that holds what one second brings, or `least` if that is more."""

    __slots__ = ("_at", "_held", "_most", "_rate")

    def __init__(self, rate: float, now: float, least: float = 0.0) -> None:
        self._rate = rate
        self._most = max(rate, least)
        self._held = self._most
        self._at = now

    def missing(self, amount: float, now: float) -> float:
        """Seconds until `amount` is there, 0 where it is."""
        if now > self._at:
            self._held = min(self._most, self._held + (now - self._at) * self._rate)
            self._at = now
        return max(0.0, amount - self._held) / self._rate

    def take(self, amount: float) -> None:
        """Takes what `missing` has found to be there; gives back what is negative."""
        self._held = min(self._most, self._held - amount)

    def full(self, now: float) -> bool:
        """Whether nothing was taken lately."""
        return self.missing(self._most, now) == 0.0


class Bucket:
    """Both rates of one session: an operation takes from both or from neither."""

    __slots__ = ("_bytes", "_largest", "_messages")

    def __init__(self, settings: Settings, now: float) -> None:
        self._largest = settings.max_message_kib * KIB
        self._messages = Tokens(settings.send_messages_per_second, now)
        self._bytes = Tokens(settings.send_kib_per_second * KIB, now, self._largest)

    def take(self, size: int, now: float) -> int:
        """0 where the operation may go, else the milliseconds after which to try again."""
        size = min(size, self._largest)
        missing = max(self._messages.missing(1, now), self._bytes.missing(size, now))
        if missing:
            return math.ceil(missing * 1000)
        self._messages.take(1)
        self._bytes.take(size)
        return 0

    def refund(self, size: int) -> None:
        """Gives back what a duplicate took."""
        self._messages.take(-1)
        self._bytes.take(-min(size, self._largest))

    def idle(self, now: float) -> bool:
        """Whether forgetting the bucket changes nothing."""
        return self._messages.full(now) and self._bytes.full(now)


class Rates:
    """The buckets of sessions. They outlive attachments: registering anew resets nothing."""

    PRUNED_ABOVE = 1024

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._buckets: dict[SessionId, Bucket] = {}

    def of(self, session: SessionId, now: float) -> Bucket:
        """The bucket of a session."""
        bucket = self._buckets.get(session)
        if bucket is None:
            if len(self._buckets) >= self.PRUNED_ABOVE:
                self._prune(now)
            bucket = self._buckets[session] = Bucket(self._settings, now)
        return bucket

    def _prune(self, now: float) -> None:
        self._buckets = {
            session: bucket for session, bucket in self._buckets.items() if not bucket.idle(now)
        }
