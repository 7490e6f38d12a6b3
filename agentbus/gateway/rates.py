"""Rates of a session: messages and bytes a second, with a burst of one second."""

from __future__ import annotations

import math

from agentbus.config import KIB, Settings
from agentbus.model.ids import SessionId


class Bucket:
    """Tokens of one session, for messages and for bytes: an operation takes of both or of neither.

    It holds what one second brings, and of bytes at least one maximum envelope.
    """

    __slots__ = (
        "_at",
        "_byte_rate",
        "_bytes",
        "_largest",
        "_message_rate",
        "_messages",
        "_most_bytes",
    )

    def __init__(self, settings: Settings, now: float) -> None:
        self._largest = settings.max_message_kib * KIB
        self._message_rate = settings.send_messages_per_second
        self._byte_rate = settings.send_kib_per_second * KIB
        self._most_bytes = max(self._byte_rate, self._largest)
        self._messages = float(self._message_rate)
        self._bytes = float(self._most_bytes)
        self._at = now

    def take(self, size: int, now: float) -> int:
        """0 where the operation may go, else the milliseconds after which to try again."""
        size = min(size, self._largest)
        if now > self._at:
            self._fill(now)
        if self._messages < 1 or self._bytes < size:
            waits = (
                (1 - self._messages) / self._message_rate,
                (size - self._bytes) / self._byte_rate,
            )
            return max(1, math.ceil(max(waits) * 1000))
        self._messages -= 1
        self._bytes -= size
        return 0

    def _fill(self, now: float) -> None:
        elapsed, self._at = now - self._at, now
        self._messages = min(self._message_rate, self._messages + elapsed * self._message_rate)
        self._bytes = min(self._most_bytes, self._bytes + elapsed * self._byte_rate)

    def refund(self, size: int) -> None:
        """Gives back what a duplicate took."""
        self._messages = min(self._message_rate, self._messages + 1)
        self._bytes = min(self._most_bytes, self._bytes + min(size, self._largest))

    def idle(self, now: float) -> bool:
        """Whether forgetting the bucket changes nothing."""
        self._fill(max(now, self._at))
        return self._messages == self._message_rate and self._bytes == self._most_bytes


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
