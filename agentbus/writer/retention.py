"""What is deleted when, in chunks between the batches.

    own        at every cleanup, what is noted of own messages that every cursor has passed
    age        at every cleanup, ordinary rows older than the retention, oldest first
    receipts   at every cleanup, those older than their lifetime
    purge      at every cleanup, tombstones older than their minimum age, and the floor raised
    measure    at every cleanup, and whenever usage has changed by a part of the budget, Redis is
               asked for its size, to go on with a better ratio
    capacity   when a batch does not fit: at once until it does, and between the batches until the
               free target is reached, oldest first across all ordinary channels; a successor of
               this process goes on with it once Redis has told its size

A chunk is a transaction of its own, so that a send never waits for more than one of them. Whatever
goes from the database goes from the projection: each chunk's boundaries follow its commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec

from agentbus.config import MIB, Settings
from agentbus.errors import AgentbusError
from agentbus.model.ids import CommitId
from agentbus.model.ports import Instant
from agentbus.model.session import HOUR_MS
from agentbus.sqlite import Busy
from agentbus.store.write import WriteStore
from agentbus.store.write.evict import Victim
from agentbus.store.write.rows import Revision
from agentbus.wire.events import Note, Send
from agentbus.wire.links import (
    GATEWAY_WRITER,
    WRITER_PROJECTOR,
    Append,
    CapacityWarning,
    Evicted,
    GatewayToWriter,
    Measured,
    MemoryEdit,
)
from agentbus.writer.accounting import Accounting
from agentbus.writer.ages import Ages
from agentbus.writer.capacity import ROW_OVERHEAD, Capacity, Room, Stored
from agentbus.writer.events import Effect

T = TypeVar("T")

CHUNK_ROWS: Final = 512
CHUNK_BYTES: Final = MIB
LEAST_ROWS: Final = 32
LEAST_BYTES: Final = 64 * 1024
"""Of an eviction beside small batches, whose senders would wait for a large one."""

PACE: Final = 4
"""Times the bytes of the last batch: so much faster goes what is evicted than what comes."""

BUSY_SECONDS: Final = 0.01
FAILED_SECONDS: Final = 1.0
WARN_SECONDS: Final = 900.0
"""Between two capacity warnings."""

MEASURES_KEPT: Final = 64
COMMITS_KEPT: Final = 1024

AMPLE: Final = 8 * MIB
"""Where any batch fits: `batch.MAX_BYTES` and a message more."""


Chunk = tuple[list[Effect], bool]
"""What follows from a chunk, and whether there may be more of its kind."""

NOTHING: Final[Chunk] = ([], False)


class Retention:
    """Works while the projection does: what goes from the database has to go from there too."""

    def __init__(self, store: WriteStore, settings: Settings, config_path: str, ages: Ages) -> None:
        self._store = store
        self._config_path = config_path
        self._capacity = Capacity(settings)
        self._interval = settings.cleanup_interval_seconds
        self._retention = settings.message_retention_hours * HOUR_MS
        self._receipts = settings.dedup_retention_hours * HOUR_MS
        self._tombstones = settings.tombstone_min_hours * HOUR_MS
        self._ages = ages
        self._accounting: Accounting | None = None
        self._floor = 0  # no ordinary row has this id or a lower one
        self._cleaning = False
        self._noted = self._unfinished = store.evictions.is_cleaning()
        self._sweep: list[Callable[[Instant], Chunk]] = []
        self._round = 0
        self._lives: dict[int, tuple[int, int]] = {}  # by round: live bytes, growth until then
        self._growth = 0  # live bytes that commits have added
        self._added = 0  # logical bytes of the last batch that had any
        self._growths: deque[tuple[CommitId, int]] = deque(maxlen=COMMITS_KEPT)
        self._asked = 0  # the projection's usage when its size was asked for last
        self._not_before = 0.0
        self._warned_at: float | None = None
        self._known: Stored | None = None
        self._waiting: list[Effect] = []
        self._next_sweep: float | None = None

    # ---- what the core asks

    def verify(self, bound: int) -> None:
        """Once the bus is ready: the counted bytes of rows up to this id are to be verified."""
        if self._accounting is None:
            self._accounting = Accounting(self._store, bound)

    def measured(self, measured: Measured) -> None:
        """Redis has told its size, maybe after commits later than the round."""
        asked = self._lives.pop(measured.round, None)
        if asked is not None:
            live = asked[0] + max(0, self._growth_at(measured.commit_id) - asked[1])
            size, with_index = measured.dataset_bytes, measured.with_index
            self._capacity.measured(size, live, with_index=with_index)
            self._cleaning = self._cleaning or self._unfinished
            self._unfinished = False

    def _growth_at(self, commit_id: CommitId) -> int:
        """By how much commits had grown the projection up to this one, as far as it is known."""
        known = (growth for commit, growth in reversed(self._growths) if commit <= commit_id)
        return next(known, 0)

    def committed(
        self, commit_id: CommitId, logical: int, live: int, replaced: Sequence[Revision]
    ) -> None:
        """A batch is in the database, which has grown by so much; these revisions were replaced."""
        self._growth += live
        if logical:  # reports between two batches of sends do not make these small
            self._added = logical
        self._growths.append((commit_id, self._growth))
        if self._known is not None:
            self._known = Stored(self._known.logical + logical, self._known.live + live)
        if self._accounting is not None:
            for revision in replaced:
                self._accounting.message_tombstoned(revision.id, len(revision.envelope))

    def make_room(self, operations: Sequence[GatewayToWriter], now: Instant) -> None:
        """Evicts until a batch fits, or nothing can be evicted.

        Raises what a transaction raises.
        """
        if self._capacity.room(self._stored()) > AMPLE:
            return
        size = sum(map(_size, operations))
        while size > self._capacity.room(self._stored()):
            self._cleaning = True
            evicted, more = self._evict(None, now)
            self._known = None
            self._waiting += evicted
            if not more:
                break

    def room(self) -> Room:
        """For the batch that follows."""
        stored = self._stored()
        left = self._capacity.room(stored)
        why = self._why(stored) if left <= AMPLE else ""
        return Room(left, why, self._capacity.projection(stored.live))

    def warn(self, now: Instant) -> None:
        """Something did not fit: a warning to everybody, now and then."""
        if self._warned_at is not None and now.monotonic < self._warned_at + WARN_SECONDS:
            return
        self._warned_at = now.monotonic
        name, used, limit = self._capacity.fullest(self._stored())
        self._waiting += [
            Note("warn", "capacity_exhausted", {"budget": name, "used": used, "limit": limit}),
            Send(GATEWAY_WRITER, CapacityWarning(self._why(self._stored()))),
        ]

    def at(self, now: Instant) -> float:
        """The monotonic time of the next thing to do."""
        if self._waiting:
            return now.monotonic
        unverified = self._accounting is not None and not self._accounting.done
        if self._cleaning or self._sweep or unverified or self._next_sweep is None:
            return max(now.monotonic, self._not_before)
        if self._is_to_measure():
            return max(now.monotonic, self._not_before)
        return max(self._next_sweep, self._not_before)

    def due(self, now: Instant) -> list[Effect]:
        """Does one chunk of what is to be done by now, and tells what came of batches."""
        effects, self._waiting = self._waiting, []
        if self._next_sweep is None:
            self._next_sweep = now.monotonic + self._interval
        if now.monotonic < self.at(now):
            return effects
        try:
            return effects + self._chunk(now)
        except Busy:
            self._not_before = now.monotonic + BUSY_SECONDS
        except AgentbusError as error:
            self._not_before = now.monotonic + FAILED_SECONDS
            fields = {"code": error.code, "text": error.message}
            effects.append(Note("error", "cleanup_failed", fields))
        return effects

    # ---- chunks

    def _chunk(self, now: Instant) -> list[Effect]:
        try:
            return self._next_chunk(now)
        finally:
            self._known = None

    def _next_chunk(self, now: Instant) -> list[Effect]:
        if self._cleaning:
            return self._clean(now)
        if self._is_to_measure() or (self._unfinished and not self._lives):
            return self._measure(now)[0]
        if self._accounting is not None and not self._accounting.done:
            with self._store.transaction():
                return list(self._accounting.step())
        if not self._sweep:
            self._sweep = [self._by_age, self._forget, self._purge, self._tidy, self._measure]
        effects, more = self._sweep[0](now)
        if not more:
            del self._sweep[0]
        if not self._sweep:
            self._next_sweep = now.monotonic + self._interval
        return effects

    def _clean(self, now: Instant) -> list[Effect]:
        """A chunk that makes room, or the end of that."""
        effects, more = NOTHING
        if self._capacity.above_target(self._stored()):
            effects, more = self._evict(None, now)
        if not more and self._noted:
            with self._store.transaction():
                self._store.evictions.cleaning(False)
            self._noted = False
        self._cleaning = more
        return effects

    def _by_age(self, now: Instant) -> Chunk:
        if not self._ages.trusted(now):
            return NOTHING
        return self._evict(int(now.wall * 1000) - self._retention, now)

    def _evict(self, sent_before: int | None, now: Instant) -> Chunk:
        """The oldest rows, or the oldest of those sent before a time."""
        with self._store.transaction():
            most = min(CHUNK_BYTES, max(LEAST_BYTES, PACE * self._added))
            rows = min(CHUNK_ROWS, max(LEAST_ROWS, CHUNK_ROWS * most // CHUNK_BYTES))
            oldest = self._store.evictions.oldest(self._floor, rows)
            victims = _chunk_of(oldest, sent_before, most)
            if not victims:
                return NOTHING
            own = ((row.channel_id, row.session_id, row.seq) for row in victims)
            self._store.gaps.evicted(own, self._ages.patient(now))
            boundaries = self._store.evictions.delete(self._floor, victims)
            if sent_before is None and not self._noted:
                self._store.evictions.cleaning(True)
        self._noted = self._noted or sent_before is None
        self._floor = victims[-1].id
        if self._accounting is not None:
            for victim in victims:
                self._accounting.message_gone(victim.id, victim.logical, victim.live)
        return [Send(WRITER_PROJECTOR, Evicted(self._next_round(), boundaries))], True

    def _forget(self, now: Instant) -> Chunk:
        if not self._ages.trusted(now):
            return NOTHING
        oldest = int(now.wall * 1000) - self._receipts
        with self._store.transaction():
            receipts = self._store.evictions.receipts(CHUNK_ROWS)
            gone = _while(receipts, lambda receipt: receipt.accepted_at < oldest)
            if not gone:
                return NOTHING
            self._store.evictions.forget(gone)
        if self._accounting is not None:
            for receipt in gone:
                self._accounting.receipt_gone(receipt.id, receipt.logical)
        return [], True

    def _purge(self, now: Instant) -> Chunk:
        if not self._ages.trusted(now):
            return NOTHING
        oldest = int(now.wall * 1000) - self._tombstones
        with self._store.transaction():
            tombstones = self._store.evictions.tombstones(CHUNK_ROWS)
            gone = _while(tombstones, lambda row: row.tombstoned_at < oldest)
            if not gone:
                return NOTHING
            self._store.evictions.purge(gone)
        if self._accounting is not None:
            for row in gone:
                self._accounting.message_gone(row.id, row.logical, 0)
        return [], True

    def _tidy(self, now: Instant) -> Chunk:
        with self._store.transaction():
            self._store.gaps.forget_passed(self._ages.patient(now))
        return NOTHING

    def _is_to_measure(self) -> bool:
        return self._known is not None and self._capacity.differs(self._asked, self._known)

    def _measure(self, _now: Instant) -> Chunk:
        return [Send(WRITER_PROJECTOR, Evicted(self._next_round(), []))], False

    def _next_round(self) -> int:
        self._round += 1
        while len(self._lives) >= MEASURES_KEPT:
            del self._lives[next(iter(self._lives))]
        self._known = None
        live = self._stored().live
        self._lives[self._round] = (live, self._growth)
        self._asked = self._capacity.projection(live)
        return self._round

    # ---- how full

    def _stored(self) -> Stored:
        if self._known is None:
            self._known = Stored(*self._store.evictions.stored())
        return self._known

    def _why(self, stored: Stored) -> str:
        name, used, limit = self._capacity.fullest(stored)
        meta = self._store.bus.meta()
        return (
            f"the bus is full: {name} allows {limit // MIB} MiB, {used / MIB:.1f} MiB are used, "
            f"and what fills it cannot be evicted: {meta.memories} memories, {meta.tombstones} "
            f"replaced or deleted revisions that are still protected, {meta.receipts} receipts. "
            f"Delete memories that are not needed; or raise {name} in {self._config_path} and "
            "restart with `agentbus stop`; or give up everything on the bus (messages, memories, "
            "identities, cursors) with `agentbus reset`"
        )


def _size(operation: GatewayToWriter) -> int:
    """About what it adds, rather more than less."""
    match operation:
        case Append(payload=payload):
            extra = msgspec.json.encode((payload.metadata, payload.references))
            return len(payload.content.encode()) * 9 // 8 + len(extra) + 2 * ROW_OVERHEAD
        case MemoryEdit(content=content):
            return len(content.encode()) * 9 // 8 + 4 * ROW_OVERHEAD
        case _:
            return 0


def _chunk_of(oldest: Sequence[Victim], sent_before: int | None, most: int) -> list[Victim]:
    """The first ones, that are old enough and of so many bytes; one at least."""
    victims: list[Victim] = []
    size = 0
    for victim in oldest:
        size += victim.logical
        too_young = sent_before is not None and victim.sent_at >= sent_before
        if too_young or (victims and size > most):
            break
        victims.append(victim)
    return victims


def _while(rows: Sequence[T], holds: Callable[[T], bool]) -> list[T]:
    found: list[T] = []
    for row in rows:
        if not holds(row):
            break
        found.append(row)
    return found
