"""The writer without its IO: what is committed when, and who is told.

    received     an operation is queued; nothing is answered before it is durable
    turn ended   one batch, one transaction; what is left over follows at once, after the answers
    committed    the gateway gets the answers, the projector the rows
    woke         retention, checkpoints, expiry, what else is due: answers do not wait for them
    locked       the batch waits and is tried again, every `RETRY_SECONDS`; what is locked for long
                 (`troubles.LOCKED_SECONDS`) has failed
    failed       nothing of the batch is stored, all of it is answered with the error
    restarted    sends that the restart caught wait for the projection, `HOLD_SECONDS` at most

Operations of a gateway that is gone are carried out as well (its reports were true), unanswered.
"""

from __future__ import annotations

from typing import Any, Final, assert_never

from agentbus.config import Settings
from agentbus.errors import AgentbusError, DatabaseDamaged, InternalError
from agentbus.model.ports import Instant, Tokens
from agentbus.runtime import exits
from agentbus.runtime.faults import Fault, Point, no_fault
from agentbus.sqlite import Busy
from agentbus.store.write import WriteStore
from agentbus.wire.error_codes import to_failure
from agentbus.wire.events import (
    Closed,
    Exit,
    Note,
    Opened,
    Received,
    Send,
    TurnEnded,
    WakeAt,
    Woke,
)
from agentbus.wire.links import (
    CONTROL,
    GATEWAY_WRITER,
    WRITER_PROJECTOR,
    Append,
    ChannelOpened,
    Committed,
    GatewayHello,
    GatewayToWriter,
    Hindered,
    Measured,
    MemoryDelete,
    MemoryEdit,
    Outcome,
    Outcomes,
    Readiness,
    Refused,
    Stop,
    Welcome,
    WriterHello,
)
from agentbus.writer.ages import Ages
from agentbus.writer.batch import MAX_OPERATIONS, Queue
from agentbus.writer.commit import Doubtful, carry_out, repeats
from agentbus.writer.events import Effect, Event, last_words, note
from agentbus.writer.expiry import Expiry
from agentbus.writer.place import Place
from agentbus.writer.retention import Retention
from agentbus.writer.state import State
from agentbus.writer.tidy import Tidy
from agentbus.writer.troubles import Troubles
from agentbus.writer.work import Terms, Work

RETRY_SECONDS: Final = 0.01
GREETING_RETRY_SECONDS: Final = 0.25
"""After a failure of the disk: a greeting cannot be refused, so it is tried until it works."""

STOP_SECONDS: Final = 0.5
"""How long an orderly stop waits for the gateway's end of the link, which ends before it."""

HOLD_SECONDS: Final = 2.0
"""How long the first sends of all wait for a projection that is not ready: they were submitted to
the writer before this one, and the projector has yet to compare what it holds."""

WARY_BATCHES: Final = 8
"""After a start, a greeting, or a send that was not new: where one is repeated, others are."""

HELD: Final = (Append, MemoryEdit, MemoryDelete)

NOT_HEARD: Final = "the projection has not said yet that it takes messages"


class Core:
    """See the module. Made with a store that is open; raises what reading it raises.

    `fault` is told of a batch that is to be committed, and of one that was.
    """

    def __init__(
        self,
        store: WriteStore,
        settings: Settings,
        tokens: Tokens,
        fault: Fault = no_fault,
        config_path: str = "the configuration",
    ) -> None:
        self._store = store
        self._ages = Ages()
        self._retention = Retention(store, settings, config_path, self._ages)
        self._terms = Terms(settings, tokens)
        self._fault = fault
        state = State(store)
        self._state: State | None = state
        self._instance = state.instance
        self._durable = state.commit_id
        self._queue = Queue()
        self._tidy = Tidy(store)
        self._place = Place(store)
        self._expiry = Expiry(store, self._ages)
        self._linked = False
        self._not_ready: str | None = NOT_HEARD
        self._stop_by: float | None = None
        self._hold_by: float | None = None
        self._holding = True  # until the projection was ready once, or patience ends
        self._alone = 0  # operations left of a batch that was taken apart
        self._wary = WARY_BATCHES  # batches whose sends are looked up before
        self._next_try = 0.0
        self._troubles = Troubles()
        self._told = ""  # why the present gateway cannot be greeted
        self._woken_at: float | None = None

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """What follows from an event."""
        match event:
            case Received(link, message):
                self._received(link, message, now)
                return []
            case TurnEnded():
                return self._work(now)
            case Woke():
                self._woken_at = None
                return self._work(now, woken=True)
            case Opened(link):
                return self._opened(link)
            case Closed(link):
                self._closed(link)
                return self._work(now)
            case _:
                assert_never(event)

    # ---- links

    def queue(self, operations: list[GatewayToWriter]) -> None:
        """All that one read of the gateway's link has brought: a `Received` for each."""
        self._queue.put(operations)

    def _received(self, link: str, message: Any, now: Instant) -> None:
        if link == GATEWAY_WRITER:
            self._queue.put((message,))
            return
        match message:
            case Readiness(ready, reason):
                self._not_ready = None if ready else reason
                if ready and self._holding:
                    self._holding, self._next_try = False, 0.0
            case Measured():
                self._retention.measured(message)
            case Stop():
                self._stop_by = now.monotonic + STOP_SECONDS
            case _:
                pass  # told to everybody; nothing to do for the writer

    def _opened(self, link: str) -> list[Effect]:
        if link == GATEWAY_WRITER:
            self._linked = True
        elif link == WRITER_PROJECTOR:
            self._not_ready = NOT_HEARD
            return [Send(WRITER_PROJECTOR, WriterHello(self._instance, self._durable))]
        return []

    def _closed(self, link: str) -> None:
        if link == GATEWAY_WRITER:
            self._linked = False
            self._told = ""
            self._queue.orphan()
        elif link == WRITER_PROJECTOR:
            self._not_ready = NOT_HEARD

    # ---- batches

    def _work(self, now: Instant, *, woken: bool = False) -> list[Effect]:
        effects = self._watch_clock(now)
        batch = bool(self._queue) and now.monotonic >= self._next_try
        if woken or not batch:
            effects += self._tend(now)
        if batch:
            effects += self._next_batch(now)
        if self._may_exit(now):
            return [*effects, *self._tidy.last(), Exit(exits.OK)]
        return effects + self._wake(now)

    def _tend(self, now: Instant) -> list[Effect]:
        """What is due beside the batches."""
        effects = self._retain(now)
        effects += self._tidy.due(now, idle=not self._queue)
        if self._state is not None:
            effects += self._expiry.due(self._state, now, linked=self._linked)
        return effects

    def _watch_clock(self, now: Instant) -> list[Effect]:
        if not self._ages.observe(now):
            return []
        return [Note("warn", "clock_jumped", {"seconds": round(self._ages.jump)})]

    def _retain(self, now: Instant) -> list[Effect]:
        """One chunk of what retention is about to delete, between the batches."""
        if self._stop_by is not None or self._not_ready is not None:
            return []
        if self._state is not None:
            self._retention.verify(self._state.last_id)
        return self._retention.due(now)

    def _may_exit(self, now: Instant) -> bool:
        if self._stop_by is None or self._queue:
            return False
        return not self._linked or now.monotonic >= self._stop_by

    def _wake(self, now: Instant) -> list[Effect]:
        """Asks for a wake-up, unless one is to come that is early enough."""
        if self._queue:
            when = max(now.monotonic, self._next_try)
        else:
            ready = self._not_ready is None and self._stop_by is None
            retention = self._retention.at(now) if ready else None
            expiry = self._expiry.at if self._state is not None else None
            asked = (self._tidy.at, expiry, retention, self._stop_by)
            times = [time for time in asked if time is not None]
            if not times:
                return []
            when = min(times)
        if self._woken_at is not None and self._woken_at <= when:
            return []
        self._woken_at = when
        return [WakeAt(when)]

    def _next_batch(self, now: Instant) -> list[Effect]:
        operations = self._queue.cut(1 if self._alone else MAX_OPERATIONS)
        if self._holding and not (operations := self._before_sends(operations, now)):
            return []
        hello = operations[0] if isinstance(operations[0], GatewayHello) else None
        try:
            return self._greet(hello, now) if hello else self._commit(operations, now)
        except Busy as error:
            self._next_try = now.monotonic + RETRY_SECONDS
            if not self._troubles.locked(now):
                return []
            notes = self._troubles.failed(error, now)
            return notes + (self._hindered(error) if hello else self._refuse(operations, error))
        except DatabaseDamaged as error:
            return [*self._refuse(operations, error), *last_words(error)]
        except AgentbusError as error:
            notes = self._troubles.failed(error, now)
            if not hello:
                return notes + self._refuse(operations, error)
            self._next_try = now.monotonic + GREETING_RETRY_SECONDS
            return notes + self._hindered(error)
        except Doubtful:
            self._wary = WARY_BATCHES
            return self._next_batch(now)
        except Exception as error:
            if not hello:
                return self._isolate(operations, error)
            raise

    def _hindered(self, error: AgentbusError) -> list[Effect]:
        """A gateway that cannot be greeted does not hear why from us."""
        if error.message == self._told:
            return []
        self._told = error.message
        return [Send(CONTROL, Hindered(to_failure(error)))]

    def _before_sends(
        self, operations: list[GatewayToWriter], now: Instant
    ) -> list[GatewayToWriter]:
        """What goes on while sends are held; everything once that has taken too long."""
        changes = (n for n, operation in enumerate(operations) if isinstance(operation, HELD))
        first = next(changes, None)
        if first is None:
            return operations
        if self._hold_by is None:
            self._hold_by = now.monotonic + HOLD_SECONDS
        if now.monotonic >= self._hold_by:
            self._holding = False
            return operations
        if first == 0:
            self._next_try = self._hold_by
        return operations[:first]

    def _greet(self, hello: GatewayHello, now: Instant) -> list[Effect]:
        """A gateway that has no number yet gets one; then no older attachment counts."""
        state = self._loaded()
        if hello.incarnation == 0 or hello.incarnation != state.incarnation:
            with self._store.transaction():
                self._state = None
                incarnation = self._store.bus.next_incarnation()
                self._store.people.detach_all(int(now.wall * 1000))
            state.incarnation = incarnation
            state.detach_all()
            self._state = state
            self._troubles.over()
            self._tidy.changed(now)
        self._wary = WARY_BATCHES
        if not self._done(1):
            return []
        channels = [channel.info for channel in state.channels.values()]
        welcome = Welcome(state.incarnation, state.instance, state.commit_id, channels)
        return [Send(GATEWAY_WRITER, welcome)]

    def _commit(self, operations: list[GatewayToWriter], now: Instant) -> list[Effect]:
        self._place.require(now)
        state = self._loaded()
        if self._not_ready is None:  # what cannot be accepted anyway needs no room
            self._retention.make_room(operations, now)
        room = self._retention.room()
        with self._store.transaction():
            self._state = None  # it runs ahead of the database from here on
            work = Work(
                self._store,
                state,
                self._terms,
                now,
                patient_now=self._ages.patient(now),
                not_ready=self._not_ready,
                careful=self._alone > 0,
                trusting=not (self._wary or self._alone),
                forgets=self._ages.trusted(now),
                room=room,
            )
            outcomes = carry_out(work, operations)
            self._fault(Point.UNCOMMITTED)
        self._state = state
        self._durable = state.commit_id
        if self._wary:
            self._wary = WARY_BATCHES if repeats(operations, outcomes) else self._wary - 1
        self._troubles.over()
        self._fault(Point.COMMITTED)
        self._tidy.changed(now)
        rows = work.rows
        added = (rows.logical_bytes, rows.live_bytes, rows.replaced)
        self._retention.committed(self._durable, *added)
        if room.refused:
            self._retention.warn(now)
        return self._tell(work, outcomes)

    def _tell(self, work: Work, outcomes: list[Outcome]) -> list[Effect]:
        effects: list[Effect] = []
        if self._done(len(outcomes)):
            news = [*(ChannelOpened(channel.info) for channel in work.opened), *work.changed]
            effects += [Send(GATEWAY_WRITER, told) for told in news]
            effects += self._answer(outcomes)
        rows, tombstones = work.rows.inserted, work.rows.tombstones
        if rows or tombstones:
            committed = Committed(work.previous, work.commit_id, rows, tombstones)
            effects.append(Send(WRITER_PROJECTOR, committed))
        return effects

    def _loaded(self) -> State:
        """What is known, read anew after a batch that failed."""
        if self._state is None:
            self._state = State(self._store)
        return self._state

    def _done(self, count: int) -> bool:
        """Takes them off the queue; whether anybody is there to be answered."""
        self._alone = max(0, self._alone - count)
        return self._queue.drop(count)

    def _answer(self, outcomes: list[Outcome]) -> list[Effect]:
        return [Send(GATEWAY_WRITER, Outcomes(self._durable, outcomes))] if outcomes else []

    def _refuse(self, operations: list[GatewayToWriter], error: AgentbusError) -> list[Effect]:
        if not self._done(len(operations)):
            return []
        failure = to_failure(error)
        return self._answer(
            [
                Refused(operation.ref, failure)
                for operation in operations
                if not isinstance(operation, GatewayHello)
            ]
        )

    def _isolate(self, operations: list[GatewayToWriter], error: Exception) -> list[Effect]:
        """Something nobody looked for: an id with a row and no receipt, or a fault of ours.

        The operation that meets it must neither kill us nor harm the others of its batch.
        """
        kind = type(operations[0]).__name__
        if not self._alone:
            self._alone = len(operations)
            return [note("warn", "batch_taken_apart", error, operations=len(operations))]
        crashed = note("error", "operation_crashed", error, operation=kind)
        return [crashed, *self._refuse(operations, InternalError(f"the writer failed in {kind}"))]
