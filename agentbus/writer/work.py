"""One transaction under way: what its operations share, and the rows they have gathered."""

from __future__ import annotations

from agentbus.config import KIB, Settings
from agentbus.model.ids import ChannelId, CommitId, Seq, SessionId, SubscriptionId
from agentbus.model.message import rfc3339
from agentbus.model.ports import Instant, Tokens
from agentbus.model.session import HOUR_MS, Subscription
from agentbus.store.write import WriteStore
from agentbus.store.write.rows import Advance, MessageRow, ReceiptRow
from agentbus.wire.links import Append, RowInserted
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

    `now` is wall time in milliseconds. `not_ready` is why appends are refused, if they are.
    `size` is about what the batch adds to frames, in bytes.
    """

    def __init__(
        self,
        store: WriteStore,
        state: State,
        terms: Terms,
        now: Instant,
        *,
        not_ready: str | None,
        careful: bool,
    ) -> None:
        self.store = store
        self.state = state
        self.terms = terms
        self.not_ready = not_ready
        self.careful = careful
        self.now = int(now.wall * 1000)
        self.size = 0
        self.sent_at = max(self.now, state.sent_at)
        self.sent_at_text = rfc3339(self.sent_at)
        self.previous = state.commit_id
        self.commit_id = CommitId(state.commit_id + 1)
        self.inserted: list[RowInserted] = []
        self.opened: list[Channel] = []
        self.receipts: dict[str, ReceiptRow] = {}
        self.taken: set[str] = set()
        self._memories = 0
        self._messages: list[MessageRow] = []
        self._receipts: list[ReceiptRow] = []
        self._grown: dict[ChannelId, Channel] = {}
        self._moved: dict[SubscriptionId, Subscription] = {}

    def look_up(self, operation_ids: list[str]) -> None:
        """Finds what is known of the appends to come, all at once.

        A row whose receipt has expired is only looked for where `careful`. Elsewhere the unique
        index finds it, and the batch is tried again: ids are hardly ever used anew after days.
        """
        self.receipts = self.store.rows.receipts(operation_ids)
        if self.careful:
            rest = [name for name in operation_ids if name not in self.receipts]
            self.taken = self.store.rows.taken(rest)

    def insert(
        self,
        operation: Append,
        session: SessionId,
        channel: Channel,
        thread: str,
        memory_id: str | None,
        envelope: bytes,
    ) -> None:
        """Takes the channel's next position for a message, or for the creation of a memory."""
        self.state.last_id = id_ = self.state.last_id + 1
        channel.last_seq = seq = Seq(channel.last_seq + 1)
        self._grown[channel.id] = channel
        revision = None
        if memory_id is not None:
            revision = 1
            self._memories += 1
        key, where, at = operation.message_id, channel.id, self.sent_at
        receipt = (id_, key, session, operation.fingerprint, where, seq, at, memory_id, revision)
        self.receipts[key] = receipt
        self._receipts.append(receipt)
        self._messages.append(
            (
                id_,
                where,
                seq,
                session,
                self.commit_id,
                at,
                key,
                None if thread == key else thread,
                operation.payload.reply_to,
                memory_id,
                revision,
                envelope,
            )
        )
        self.inserted.append(RowInserted(where, seq, session, envelope, memory_id, revision))
        self.size += len(envelope)

    def move(self, subscription: Subscription) -> None:
        """The cursor has a new position; only the last one of a batch is written."""
        self._moved[subscription.id] = subscription

    def flush(self) -> None:
        """Writes what was gathered so far."""
        self.flush_positions()
        if not self._messages:
            return
        state = self.state
        state.commit_id, state.sent_at = self.commit_id, self.sent_at
        advance = Advance(
            last_id=state.last_id,
            commit_id=self.commit_id,
            sent_at=self.sent_at,
            messages=len(self._messages) - self._memories,
            memories=self._memories,
            receipts=len(self._receipts),
        )
        tops = [(channel.last_seq, channel.id) for channel in self._grown.values()]
        self.store.rows.append(self._messages, self._receipts, tops, advance)
        self._messages, self._receipts, self._memories = [], [], 0
        self._grown.clear()

    def flush_positions(self) -> None:
        """Writes the cursors' positions, before they are read from the database."""
        if self._moved:
            moved = [(cursor.id, cursor.position) for cursor in self._moved.values()]
            self.store.cursors.advance_subscriptions(moved)
            self._moved.clear()
