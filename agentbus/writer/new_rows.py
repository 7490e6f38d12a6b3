"""The rows that one transaction inserts and tombstones, gathered so that they are written together.

They are numbered at once. A revision that is replaced in the transaction that made it is written
first: there is at most one that is not tombstoned at a position.
"""

from __future__ import annotations

from agentbus.model.ids import ChannelId, CommitId, Seq, SessionId
from agentbus.model.message import Message
from agentbus.store.write.rows import (
    ROW_BYTES,
    Advance,
    MessageRow,
    PlainReceiptRow,
    ReceiptRow,
    Revision,
    RootRow,
    Rows,
    text_bytes,
)
from agentbus.wire.links import Append, RowInserted, Tombstoned
from agentbus.writer.state import Channel, State


class NewRows:
    """What operations add, in their order; all of it at one time, with one commit number."""

    def __init__(self, rows: Rows, state: State, sent_at: int, commit_id: CommitId) -> None:
        self._rows = rows
        self._state = state
        self._sent_at = sent_at
        self._commit_id = commit_id
        self.tombstones: list[Tombstoned] = []
        self.replaced: list[Revision] = []
        """What the tombstones were."""
        self.logical_bytes = 0
        self.live_bytes = 0
        """By how much the database has grown: in all, and by envelopes that are not tombstoned."""
        self.receipts: dict[str, ReceiptRow] = {}
        """By operation id: those found, and those added."""
        self._inserted: list[RowInserted] = []
        self._memories: dict[str, RowInserted] = {}
        self._current: dict[str, Revision | None] = {}
        self._written = state.last_id
        self._messages: list[RootRow | MessageRow] = []
        self._receipts: list[PlainReceiptRow | ReceiptRow] = []
        self._grown: dict[ChannelId, Seq] = {}
        self._created = 0
        self._revised = 0
        self._deleted = 0
        self._logical = 0
        self._live = 0

    @property
    def inserted(self) -> list[RowInserted]:
        """What the commit adds to the projection, each channel in stream order.

        Of a memory only the revision that is current in the end, at the place of its creation
        where that is in the same commit.
        """
        if not self._memories:
            return self._inserted
        return [*self._inserted, *self._memories.values()]

    def current(self, memory_id: str) -> Revision | None:
        """A memory's current revision; None where it was deleted or never was."""
        if memory_id in self._current:
            return self._current[memory_id]
        return self._rows.current(memory_id)

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
        state = self._state
        state.last_id = number = state.last_id + 1
        self._grown.setdefault(channel.id, channel.last_seq)
        channel.last_seq = seq = Seq(channel.last_seq + 1)
        message_id, reply_to = operation.message_id, operation.payload.reply_to
        revision = None if memory_id is None else 1
        # The fingerprint stays a bytearray, which equals the bytes it will be compared with.
        begun = (number, message_id, session, bytearray(operation.fingerprint), channel.id, seq)
        at = (number, channel.id, seq, session, self._commit_id, self._sent_at, message_id)
        self.receipts[message_id] = (*begun, self._sent_at, memory_id, revision, None)
        if memory_id is None and reply_to is None:
            self._receipts.append((*begun, self._sent_at))
            self._messages.append((*at, bytearray(envelope)))
        else:
            self._receipts.append(self.receipts[message_id])
            own = None if thread is message_id else thread
            self._messages.append((*at, own, reply_to, memory_id, revision, bytearray(envelope)))
        size = len(envelope)
        self._live += size
        self._logical += size + 2 * (ROW_BYTES + text_bytes(message_id))
        if thread is not message_id:
            self._logical += text_bytes(thread)
        if reply_to is not None:
            self._logical += text_bytes(reply_to)
        row = RowInserted(channel.id, seq, session, envelope, memory_id, revision, number)
        if memory_id is None:
            self._inserted.append(row)
        else:
            self._created += 1
            self._logical += 2 * text_bytes(memory_id)
            self._memories[memory_id] = row
            self._current[memory_id] = Revision(number, channel.id, seq, session, 1, envelope)

    def revise(
        self,
        session: SessionId,
        fingerprint: bytes,
        memory_id: str,
        replaced: Revision,
        message: Message,
        envelope: bytes,
    ) -> None:
        """The message is the memory's current revision from now on."""
        self._tombstone(memory_id, replaced)
        revision = replaced.number + 1
        operation_id = message.message_id
        number = self._receipt(session, operation_id, fingerprint, memory_id, replaced, revision)
        at = (replaced.channel_id, replaced.seq, replaced.session_id)
        self._messages.append(
            (
                number,
                *at,
                self._commit_id,
                self._sent_at,
                operation_id,
                message.thread,
                message.reply_to,
                memory_id,
                revision,
                bytearray(envelope),
            )
        )
        self._live += len(envelope)
        self._logical += ROW_BYTES + len(envelope) + text_bytes(operation_id)
        self._logical += text_bytes(message.thread) + text_bytes(message.reply_to)
        self._logical += text_bytes(memory_id)
        self._revised += 1
        self._memories[memory_id] = RowInserted(*at, envelope, memory_id, revision, number)
        self._current[memory_id] = Revision(number, *at, revision, envelope)

    def delete(
        self,
        session: SessionId,
        operation_id: str,
        fingerprint: bytes,
        memory_id: str,
        replaced: Revision,
    ) -> None:
        """The memory has no current revision any more."""
        self._tombstone(memory_id, replaced)
        self._receipt(session, operation_id, fingerprint, memory_id, replaced, None)
        self._deleted += 1
        self._memories.pop(memory_id, None)
        self._current[memory_id] = None

    def _tombstone(self, memory_id: str, revision: Revision) -> None:
        if revision.id > self._written:
            self.flush()
        self._rows.tombstone(revision.id, self._sent_at, self._commit_id)
        self._live -= len(revision.envelope)
        self.replaced.append(revision)
        self.tombstones.append(
            Tombstoned(revision.channel_id, memory_id, revision.seq, revision.number)
        )

    def _receipt(
        self,
        session: SessionId,
        operation_id: str,
        fingerprint: bytes,
        memory_id: str,
        replaced: Revision,
        revision: int | None,
    ) -> int:
        """Remembers a mutation under the next number, which it returns."""
        self._state.last_id = number = self._state.last_id + 1
        receipt = (
            number,
            operation_id,
            session,
            bytearray(fingerprint),
            replaced.channel_id,
            replaced.seq,
            self._sent_at,
            memory_id,
            revision,
            replaced.number,
        )
        self.receipts[operation_id] = receipt
        self._receipts.append(receipt)
        self._logical += ROW_BYTES + text_bytes(operation_id) + text_bytes(memory_id)
        return number

    def flush(self) -> None:
        """Writes what was gathered since the last time."""
        if not self._receipts:
            return
        state = self._state
        state.commit_id, state.sent_at = self._commit_id, self._sent_at
        advance = Advance(
            last_id=state.last_id,
            commit_id=self._commit_id,
            sent_at=self._sent_at,
            messages=len(self._messages) - self._created - self._revised,
            memories=self._created - self._deleted,
            tombstones=self._revised + self._deleted,
            receipts=len(self._receipts),
            logical_bytes=self._logical,
            live_bytes=self._live,
        )
        channels = state.channels_by_id
        tops = [(channels[grown].last_seq, grown, before) for grown, before in self._grown.items()]
        self._rows.append(self._messages, self._receipts, tops, advance)
        self._messages, self._receipts = [], []
        self.logical_bytes += self._logical
        self.live_bytes += self._live
        self._created = self._revised = self._deleted = self._logical = self._live = 0
        self._written = state.last_id
        self._grown.clear()
