"""One transaction under way: what its operations share, and what they have gathered."""

from __future__ import annotations

from agentbus.config import KIB, Settings
from agentbus.errors import Recovering
from agentbus.model.ids import CommitId, SubscriptionId
from agentbus.model.message import rfc3339
from agentbus.model.ports import Instant, Tokens
from agentbus.model.session import HOUR_MS, Subscription
from agentbus.store.write import WriteStore
from agentbus.wire.links import MemoryChanged
from agentbus.writer.capacity import Room
from agentbus.writer.new_rows import NewRows
from agentbus.writer.state import Channel, State


class Terms:
    """What stays the same from batch to batch; times in milliseconds."""

    def __init__(self, settings: Settings, tokens: Tokens) -> None:
        self.tokens = tokens
        self.max_message_kib = settings.max_message_kib
        self.max_message_bytes = settings.max_message_kib * KIB
        self.cursor_idle = settings.cursor_idle_hours * HOUR_MS


class Work:
    """To be made within a transaction, and flushed before it commits.

    `now` is wall time in milliseconds, `patient_now` that by which cursors expire; `forgets` tells
    whether `now` is good enough to forget by. `not_ready` is why appends are refused, if they are.
    `trusting`: the ids of appends are taken to be new, until one is not.
    `size` is about what the batch adds to frames, in bytes.
    """

    def __init__(
        self,
        store: WriteStore,
        state: State,
        terms: Terms,
        now: Instant,
        *,
        patient_now: int,
        not_ready: str | None,
        careful: bool,
        trusting: bool,
        forgets: bool,
        room: Room,
    ) -> None:
        self.room = room
        self.store = store
        self.state = state
        self.terms = terms
        self.not_ready = not_ready
        self.careful = careful
        self.trusting = trusting and not_ready is None
        self.forgets = forgets
        self.now = int(now.wall * 1000)
        self.patient_now = patient_now
        self.size = 0
        self.sent_at = max(self.now, state.sent_at)
        self.sent_at_text = rfc3339(self.sent_at)
        self.previous = state.commit_id
        self.commit_id = CommitId(state.commit_id + 1)
        self.rows = NewRows(store.rows, state, self.sent_at, self.commit_id)
        self.opened: list[Channel] = []
        self.changed: list[MemoryChanged] = []
        self.taken: set[str] = set()
        """Ids that have a row and no receipt."""
        self._moved: dict[SubscriptionId, Subscription] = {}

    def require_ready(self) -> None:
        """Raises Recovering while the projection does not take commits."""
        if self.not_ready is not None:
            raise Recovering(f"the bus is recovering ({self.not_ready}); try again shortly")

    def look_up(self, appends: list[str], others: list[str]) -> None:
        """Finds what is known of the ids of operations to come, all at once.

        A row whose receipt has expired is only looked for where `careful`, or for other operations
        than appends. Elsewhere the unique index finds it, and the batch is tried again: ids are
        hardly ever used anew after days.
        """
        ids = appends + others if others else appends
        self.rows.receipts = receipts = self.store.rows.receipts(ids)
        doubted = ids if self.careful else others
        if doubted:
            self.taken = self.store.rows.taken([name for name in doubted if name not in receipts])

    def move(self, subscription: Subscription) -> None:
        """The cursor has a new position; only the last one of a batch is written."""
        self._moved[subscription.id] = subscription

    def flush(self) -> None:
        """Writes what was gathered so far."""
        self.flush_positions()
        self.rows.flush()

    def flush_positions(self) -> None:
        """Writes the cursors' positions, before they are read from the database."""
        if self._moved:
            moved = [(cursor.id, cursor.position) for cursor in self._moved.values()]
            self.store.cursors.advance_subscriptions(moved)
            self._moved.clear()
