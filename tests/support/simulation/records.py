"""What is known of messages, memories and cursors: the records of `stored` and `truth`."""

from __future__ import annotations

import msgspec

from agentbus.config import Settings


class Violation(AssertionError):
    """A promise of the bus was broken."""


def require(condition: bool, text: str, *facts: object) -> None:
    """Raises Violation."""
    if not condition:
        raise Violation(f"{text}: {', '.join(map(str, facts))}")


class Row(msgspec.Struct):
    """A message as it was stored; `gone` when it was evicted, or its memory deleted. `ended` is
    when a revision was replaced or deleted (wall clock), `purged` that its row is not there any
    more."""

    id: int
    channel: str
    seq: int
    message_id: str
    commit_id: int
    envelope: bytes
    session: str
    memory_id: str | None
    revision: int | None
    sent_at: int
    gone: bool = False
    ended: float | None = None
    purged: bool = False

    @property
    def word(self) -> bytes:
        """The first word of its content; no other message has it."""
        return content(self.envelope).split(None, 1)[0].encode()


def content(envelope: bytes) -> str:
    """Of a message."""
    text: str = msgspec.json.decode(envelope)["content"]
    return text


class Memory(msgspec.Struct):
    """All its revisions; since when it is known to everybody that a revision has been replaced."""

    channel: str
    revisions: list[Row]
    deleted: bool = False
    answered: int = 0
    """The lowest revision that may still be shown: lower ones were replaced, and that was told."""
    answered_at: float = 0.0


class Receipt(msgspec.Struct):
    """Of an operation; `forgotten` once its lifetime has passed and it was removed."""

    id: int
    operation_id: str
    seq: int
    accepted_at: int
    session: int
    forgotten: bool = False


class Cursor(msgspec.Struct):
    """A subscription: where it began, and where it stands. `expires_at` is in milliseconds."""

    session: str
    channel: str
    start: int
    position: int
    include_own: bool
    expires_at: int


class Shown(msgspec.Struct):
    """What one session was shown of one channel: by any adapter, without a hole, and by the last
    of its adapters."""

    until: int
    include_own: bool
    ahead: dict[int, None] = {}
    life: int = 0
    last: int = 0
    seen: dict[int, None] = {}
    """By the last of its adapters."""


class Handed(msgspec.Struct, frozen=True):
    """Who handed a recv result off: the session's so manyeth adapter, connected to the daemon since
    a time (infinite: it is not), and attentive to it since another."""

    session: str
    life: int
    connected: float
    attentive: float


class Terms(msgspec.Struct, frozen=True):
    """For how long things are kept (milliseconds), and whether a budget may take them earlier."""

    hour: int
    retention: int
    receipts: int
    tombstones: int
    tight: bool
    budget: int
    """Bytes of rows that the database may hold."""


def terms(settings: Settings, hour: int, mib: int) -> Terms:
    """What the settings mean where an hour has so many milliseconds, and a MiB so many bytes."""
    return Terms(
        hour,
        settings.message_retention_hours * hour,
        settings.dedup_retention_hours * hour,
        settings.tombstone_min_hours * hour,
        tight=min(settings.redis_budget_mib, settings.sqlite_budget_mib) * mib < AMPLE,
        budget=settings.sqlite_budget_mib * mib,
    )


AMPLE = 32 * 1024 * 1024
"""More than any run stores."""
