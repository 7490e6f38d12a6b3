"""The prefetch buffer of one session: what was pushed to us and not yet shown to the agent.

Entries leave it in the order of their arrival, over all subscriptions; what becomes of each is its
subscription's (`stream`).

A new epoch voids what is buffered; the daemon sends it again, from the durable cursor on. What is
settled, handed or still being written stays known, so that it is dropped when it comes again, and
what was reported but not confirmed is reported again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

import msgspec

from agentbus.adapter.stream import Entry, Stream
from agentbus.errors import InternalError
from agentbus.wire.rpc import DeliverNote, Expired, Gap, Subscription


class Batch(msgspec.Struct, frozen=True, eq=False):
    """Entries taken together, for one result."""

    entries: list[Entry]


class _Position(msgspec.Struct):
    """All that is needed of an envelope here."""

    seq: int


_position: Final = msgspec.json.Decoder(_Position)
_encode: Final = msgspec.json.encode


class Inbox:
    """The buffer, and what has become of everything that went through it."""

    def __init__(self) -> None:
        self._epoch: str | None = None
        self._buffer: deque[Entry] = deque()
        self._streams: dict[int, Stream] = {}
        self._strays: dict[tuple[int, int], Entry] = {}
        """Being written, taken in an earlier epoch, with earlier ones of the stream unsettled."""
        self._retired: dict[int, None] = {}
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._buffer)

    @property
    def epoch(self) -> str | None:
        """What reports are made under; None while not attached."""
        return self._epoch

    # what the daemon says

    def attach(self, epoch: str, subscriptions: Iterable[Subscription]) -> None:
        """A new claim on the session: these subscriptions, from these durable positions."""
        known = {each.subscription: each for each in subscriptions}
        for gone in [each for each in self._streams if each not in known]:
            self._drop(gone)
        for each in known.values():
            self.subscribed(each.subscription, each.channel, each.position)
            self._streams[each.subscription].confirmed = each.position
        self.begin(epoch)

    def subscribed(self, subscription: int, channel: str, position: int) -> None:
        """A subscription is there, its durable position is known."""
        self._retired.pop(subscription, None)
        stream = self._stream(subscription, channel, position)
        stream.confirmed = max(stream.confirmed, position)
        stream.reported = max(stream.reported, position)
        if stream.settled < position:
            for entry in stream.leap(position):
                if entry.state == "buffered":
                    self._buffer.remove(entry)

    def unsubscribed(self, channel: str) -> None:
        """The agent has left the channel; what it holds of it is void."""
        for each in [key for key, stream in self._streams.items() if stream.channel == channel]:
            self._drop(each)
            self._retired[each] = None

    def detach(self) -> None:
        """The claim is lost: nothing can be reported until the next one."""
        self._epoch = None

    def begin(self, epoch: str) -> None:
        """A new epoch: see the module's theory."""
        self._epoch = epoch
        self._buffer.clear()
        for key, stream in self._streams.items():
            self._strays.update({(key, entry.seq): entry for entry in stream.void()})

    def deliver(self, note: DeliverNote) -> None:
        """What the daemon pushed; of another epoch it is nothing."""
        if note.epoch != self._epoch or note.subscription in self._retired:
            return
        stream = self._stream(note.subscription, note.channel, 0)
        gaps = [gap for gap in note.gaps if gap.resumed_at_seq > stream.settled + 1]
        for raw in note.messages:
            if self._message(note.subscription, stream, bytes(raw), gaps):
                gaps = []
        expired = note.expired if stream.farewell == "no" else []
        if gaps or expired:
            self._mark(note, stream, gaps, expired)
        stream.advance(note.through)

    def _message(self, subscription: int, stream: Stream, message: bytes, gaps: list[Gap]) -> bool:
        """Whether the message is new; `gaps` then go with it."""
        seq = _place(message)
        if stream.is_known(seq):
            return False
        size = len(message) + 1 + _size(gaps)
        entry = self._entry(subscription, stream, seq, message, gaps, [], size)
        if seq in stream.ahead:
            entry.state = "handed"
            stream.settle()
            return False
        self._buffer.append(entry)
        return True

    def _mark(
        self, note: DeliverNote, stream: Stream, gaps: list[Gap], expired: list[Expired]
    ) -> None:
        position = max([note.through, *(each.position for each in expired)])
        size = _size(gaps) + _size(expired)
        entry = self._entry(note.subscription, stream, position, None, gaps, expired, size)
        self._buffer.append(entry)

    def _entry(
        self,
        subscription: int,
        stream: Stream,
        seq: int,
        message: bytes | None,
        gaps: list[Gap],
        expired: list[Expired],
        size: int,
    ) -> Entry:
        self._arrivals += 1
        entry = Entry(
            self._arrivals, subscription, stream.channel, seq, seq, message, gaps, expired, size
        )
        stream.unsettled.append(entry)
        return entry

    # what the agent gets

    def take(self, limit: int, room: int) -> Batch:
        """The next entries, at most `limit` and `room` bytes; one that is larger alone comes alone.

        Empty where there is nothing, or where the next one is still being written.
        """
        taken: list[Entry] = []
        while self._buffer and len(taken) < limit:
            entry = self._buffer[0]
            if (entry.subscription, entry.seq) in self._strays:
                break
            if taken and entry.size > room:
                break
            room -= entry.size
            entry.state = "writing"
            taken.append(self._buffer.popleft())
        return Batch(taken)

    def restore(self, batch: Batch) -> None:
        """The batch was not and will not be written: back to where it was."""
        back = [entry for entry in batch.entries if self._restore(entry)]
        if back:
            self._buffer = deque(sorted([*back, *self._buffer], key=lambda entry: entry.order))

    def _restore(self, entry: Entry) -> bool:
        self._forget_stray(entry)
        stream = self._streams.get(entry.subscription)
        if stream is None or not any(entry is each for each in stream.unsettled):
            return False
        entry.state = "buffered"
        return True

    def hand_off(self, batch: Batch) -> None:
        """The last byte of the batch is out."""
        for entry in batch.entries:
            entry.state = "handed"
            stray = self._forget_stray(entry)
            stream = self._streams.get(entry.subscription)
            if stream is None:
                continue
            if stray:
                self._handed_elsewhere(stream, entry.seq)
            stream.settle()

    def _forget_stray(self, entry: Entry) -> bool:
        key = (entry.subscription, entry.seq)
        if self._strays.get(key) is not entry:
            return False
        del self._strays[key]
        return True

    def _handed_elsewhere(self, stream: Stream, seq: int) -> None:
        """The agent has seen a copy of what is to come, or came meanwhile."""
        copies = [each for each in stream.unsettled if each.seq == seq]
        for copy in copies:
            if copy.state == "buffered":
                self._buffer.remove(copy)
            copy.state = "handed"
        if not copies and seq > stream.settled:
            stream.ahead[seq] = None

    # what the daemon is told

    def report(self) -> list[tuple[int, int]]:
        """Positions that were not reported in this epoch; they count as reported from now on."""
        if self._epoch is None:
            return []
        found = ((key, stream.take_report()) for key, stream in self._streams.items())
        return [(key, position) for key, position in found if position is not None]

    def confirm(self, positions: Iterable[tuple[int, int]]) -> None:
        """The daemon has committed these."""
        for key, position in positions:
            stream = self._streams.get(key)
            if stream is not None and stream.confirm(position):
                self._drop(key)

    def unreport(self, positions: Iterable[tuple[int, int]]) -> None:
        """The daemon has not committed these: they are due again."""
        for key, _ in positions:
            stream = self._streams.get(key)
            if stream is not None:
                stream.forget_reports()

    def position(self, subscription: int) -> int | None:
        """The last confirmed position, None where nothing is known."""
        stream = self._streams.get(subscription)
        return None if stream is None else stream.confirmed

    def _stream(self, subscription: int, channel: str, position: int) -> Stream:
        stream = self._streams.get(subscription)
        if stream is None:
            stream = Stream(channel, position, position, position)
            self._streams[subscription] = stream
        return stream

    def _drop(self, subscription: int) -> None:
        del self._streams[subscription]
        self._buffer = deque(each for each in self._buffer if each.subscription != subscription)


def _place(message: bytes) -> int:
    try:
        return _position.decode(message).seq
    except msgspec.MsgspecError as error:
        raise InternalError(f"a message has no place in its channel: {error}") from error


def _size(notices: Iterable[Gap | Expired]) -> int:
    return sum(len(_encode(each)) + 1 for each in notices)
