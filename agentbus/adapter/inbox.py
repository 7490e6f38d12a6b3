"""The prefetch buffer of one session: what was pushed to us and not yet shown to the agent.

Entries leave it in the order of their arrival, over all subscriptions; what becomes of each is its
subscription's (`stream`).

A new epoch voids what is buffered; the daemon sends it again, from the durable cursor on. What is
settled, handed or still being written stays known, so that it is dropped when it comes again, and
what was reported but not confirmed is reported again.

When a memory is changed, the entry that holds it changes with it, and is not shown any more as it
was: the caller has lines taken back that are being written (`Batch.holds`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from agentbus.adapter.stream import Entry, Stream, untold
from agentbus.errors import InternalError
from agentbus.wire.rpc import DeliverNote, Gap, ReviseNote, RevokeNote, Subscription


class Batch(msgspec.Struct, frozen=True, eq=False):
    """Entries taken together, for one result."""

    entries: list[Entry]

    @property
    def size(self) -> int:
        """Bytes of them in a result."""
        return sum(entry.size for entry in self.entries)

    @property
    def holds_memories(self) -> bool:
        """Whether something in it may be changed by somebody."""
        return any(entry.is_memory for entry in self.entries)

    def holds(self, entries: Collection[Entry]) -> bool:
        """Whether one of these is in it."""
        return any(entry is each for entry in self.entries for each in entries)


class _Head(msgspec.Struct):
    """All that is needed of an envelope here."""

    seq: int
    memory_id: str | None = None


_head: Final = msgspec.json.Decoder(_Head)


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
        for each in known.values():
            self.subscribed(each.subscription, each.channel, each.position)
            self._streams[each.subscription].confirmed = each.position
        self.begin(epoch)
        for key, stream in list(self._streams.items()):
            if key not in known and stream.farewell == "none":
                self._drop(key)

    def subscribed(self, subscription: int, channel: str, position: int) -> None:
        """A subscription is there, its durable position is known; one that expired is forgotten."""
        self._retired.pop(subscription, None)
        for key, each in list(self._streams.items()):
            if each.channel == channel and each.farewell != "none":
                self._drop(key)
        stream = self._stream(subscription, channel, position)
        stream.confirmed = max(stream.confirmed, position)
        stream.reported = max(stream.reported, position)
        if stream.settled < position:
            self._unbuffer(stream.leap(position))

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
        gaps = [gap for gap in note.gaps if gap.lost and gap.resumed_at_seq > stream.last + 1]
        for raw in note.messages:
            gaps = self._message(note.subscription, stream, bytes(raw), gaps)
        if gaps:
            self._buffer.append(self._entry(note.subscription, stream, note.through, gaps))
        if note.expired:
            self._expire(note, stream)
        else:
            stream.advance(note.through)

    def _message(
        self, subscription: int, stream: Stream, message: bytes, gaps: list[Gap]
    ) -> list[Gap]:
        """The gaps before a message go with it; gives what is left to be told of them."""
        head = _read_head(message)
        if head.seq <= stream.last:
            return gaps
        entry = self._entry(subscription, stream, head.seq, gaps)
        entry.message = message
        entry.is_memory = head.memory_id is not None
        if head.seq not in stream.ahead:
            self._buffer.append(entry)
            return []
        entry.state = "handed"
        left = untold(gaps, stream.ahead[head.seq])
        stream.settle()
        return left

    def _expire(self, note: DeliverNote, stream: Stream) -> None:
        position = max(each.position for each in note.expired)
        if stream.expire(position):
            self._clear(note.subscription)
            entry = self._entry(note.subscription, stream, position, [])
            entry.expired = note.expired
            self._buffer.append(entry)

    def _entry(self, subscription: int, stream: Stream, seq: int, gaps: list[Gap]) -> Entry:
        self._arrivals += 1
        entry = Entry(self._arrivals, subscription, stream.channel, seq, seq, None, gaps)
        stream.unsettled.append(entry)
        return entry

    def revise(self, note: ReviseNote | RevokeNote) -> list[Entry]:
        """A memory has changed, or is gone; gives what of it is being written at the moment."""
        if note.epoch != self._epoch:
            return []
        message = bytes(note.message) if isinstance(note, ReviseNote) else None
        found = self._holding(note.subscription, note.seq)
        for entry in found:
            entry.message = message
            if entry.state == "buffered" and entry.is_empty:
                self._unbuffer([entry])
                self._pass_over(entry)
        return [entry for entry in found if entry.state == "writing"]

    def _holding(self, subscription: int, seq: int) -> list[Entry]:
        stream, stray = self._streams.get(subscription), self._strays.get((subscription, seq))
        held = [] if stream is None else [each for each in stream.unsettled if each.seq == seq]
        held += [] if stray is None else [stray]
        return [each for each in held if each.message is not None and each.state != "handed"]

    def _pass_over(self, entry: Entry) -> None:
        """Its place counts as handed, with nothing to show for it."""
        entry.state = "handed"
        self._streams[entry.subscription].settle()

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
            size = entry.size
            if taken and size > room:
                break
            room -= size
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
        if stream is None or not stream.holds(entry):
            return False
        void = stream.farewell != "none" and not entry.expired
        if entry.is_empty or void:
            self._pass_over(entry)
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
                self._handed_elsewhere(stream, entry)
            stream.settle()

    def _forget_stray(self, entry: Entry) -> bool:
        key = (entry.subscription, entry.seq)
        if self._strays.get(key) is not entry:
            return False
        del self._strays[key]
        return True

    def _handed_elsewhere(self, stream: Stream, entry: Entry) -> None:
        """The agent has seen a copy of what is to come, or came meanwhile."""
        copies = [each for each in stream.unsettled if each.seq == entry.seq]
        for copy in copies:
            copy.message, copy.gaps = None, untold(copy.gaps, entry.lost)
            if copy.is_empty:
                self._unbuffer([copy])
                copy.state = "handed"
        if not copies and entry.seq > stream.settled:
            stream.ahead[entry.seq] = entry.lost

    def _unbuffer(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if entry.state == "buffered":
                self._buffer.remove(entry)

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
        self._clear(subscription)

    def _clear(self, subscription: int) -> None:
        self._buffer = deque(each for each in self._buffer if each.subscription != subscription)


def _read_head(message: bytes) -> _Head:
    try:
        return _head.decode(message)
    except msgspec.MsgspecError as error:
        raise InternalError(f"a message has no place in its channel: {error}") from error
