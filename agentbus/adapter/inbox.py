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

from agentbus.adapter.stream import Entry, Stream
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


class _Head(msgspec.Struct, frozen=True):
    """All that is needed of an envelope here."""

    seq: int
    memory_id: str | None = None


_head: Final = msgspec.json.Decoder(_Head)


class Inbox:
    """The buffer, and what has become of everything that went through it."""

    def __init__(self) -> None:
        self._epoch: str | None = None
        self._epochs = 0
        self._buffer: deque[Entry] = deque()
        self._streams: dict[int, Stream] = {}
        self._strays: dict[tuple[int, int], Entry] = {}
        """Being written, taken in an earlier epoch, with earlier ones of the stream unsettled."""
        self._retired: dict[int, None] = {}
        self._arrivals = 0
        self._left = (0, 0)
        """Messages, and their bytes, handed off since others came."""

    def __len__(self) -> int:
        return len(self._buffer)

    @property
    def epoch(self) -> str | None:
        """What reports are made under; None while not attached."""
        return self._epoch

    @property
    def behind(self) -> bool:
        """Whether the daemon holds more that it will push."""
        return any(stream.behind for stream in self._streams.values())

    @property
    def peak(self) -> tuple[int, int]:
        """How many messages it held when the last ones came, and their bytes."""
        entries = [entry for stream in self._streams.values() for entry in stream.unsettled]
        held = sum(len(entry.message or b"") for entry in entries)
        return len(entries) + self._left[0], held + self._left[1]

    def caught_up(self) -> None:
        """The daemon says that nothing is on its way."""
        for stream in self._streams.values():
            stream.behind = False

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
        """A subscription is there, its durable position is known. It replaces one that expired,
        whether that was told or not: what is held of that one nobody keeps current any more."""
        self._retired.pop(subscription, None)
        for key, each in list(self._streams.items()):
            if each.channel == channel and (key != subscription or each.farewell != "none"):
                self._drop(key)
                if key != subscription:
                    self._retired[key] = None
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
        self._epochs += 1
        self._buffer.clear()
        for stream in self._streams.values():
            self._stray(stream.void())

    def _stray(self, entries: Iterable[Entry]) -> None:
        self._strays.update({(entry.subscription, entry.seq): entry for entry in entries})

    def deliver(self, note: DeliverNote) -> None:
        """What the daemon pushed; of another epoch it is nothing."""
        if note.epoch != self._epoch or note.subscription in self._retired:
            return
        stream = self._stream(note.subscription, note.channel, 0)
        stream.behind = note.behind
        self._left = (0, 0)
        messages = [(_read_head(message), message) for message in map(bytes, note.messages)]
        if stream.stale:
            current = {head.seq: message for head, message in messages}
            stream.refresh(note.through, current, self._epochs)
        gaps = [gap for gap in note.gaps if gap.lost and gap.resumed_at_seq > stream.last + 1]
        for head, message in messages:
            if self._message(note.subscription, stream, head, message, gaps):
                gaps = []
        if gaps:
            self._admit(self._entry(note.subscription, stream, note.through, gaps))
        if note.expired:
            self._expire(note, stream)
        else:
            stream.advance(note.through)

    def _message(
        self, subscription: int, stream: Stream, head: _Head, message: bytes, gaps: list[Gap]
    ) -> bool:
        """Whether the place was not known; what is lost before it goes with it."""
        if head.seq <= stream.last:
            return False
        entry = self._entry(subscription, stream, head.seq, gaps)
        if head.seq not in stream.told:
            entry.message = message
            entry.is_memory = head.memory_id is not None
        self._admit(entry)
        return True

    def _expire(self, note: DeliverNote, stream: Stream) -> None:
        if stream.expire(note.through):
            self._clear(note.subscription)
            entry = self._entry(note.subscription, stream, note.through, [])
            entry.expired = note.expired
            self._admit(entry)

    def _entry(self, subscription: int, stream: Stream, seq: int, lost: list[Gap]) -> Entry:
        self._arrivals += 1
        entry = Entry(self._arrivals, subscription, stream.channel, seq, seq, None, lost)
        entry.epoch = self._epochs
        stream.unsettled.append(entry)
        return entry

    def _admit(self, entry: Entry) -> None:
        if entry.is_empty:
            self._pass_over(entry)
        else:
            self._buffer.append(entry)

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
            if self._is_uncertain(entry):
                break
            self._streams[entry.subscription].count(entry)
            size = entry.size
            if not size:
                self._pass_over(self._buffer.popleft())
                continue
            if taken and size > room:
                break
            room -= size
            entry.state = "writing"
            taken.append(self._buffer.popleft())
        return Batch(taken)

    def _is_uncertain(self, entry: Entry) -> bool:
        """What is being written of an earlier epoch decides whether this is shown, and how."""
        if not self._strays:
            return False
        places = [seq for subscription, seq in self._strays if subscription == entry.subscription]
        return any(
            seq == entry.seq or any(gap.after_seq < seq <= gap.resumed_at_seq for gap in entry.lost)
            for seq in places
        )

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
        if entry.is_memory and entry.epoch < self._epochs:
            self._stray(each for each in stream.forget(entry) if each is not entry)
            return False
        if entry.is_empty or (stream.farewell != "none" and not entry.expired):
            self._pass_over(entry)
            return False
        entry.state = "buffered"
        return True

    def hand_off(self, batch: Batch) -> None:
        """The last byte of the batch is out."""
        count, size = self._left
        self._left = count + len(batch.entries), size + batch.size
        for entry in batch.entries:
            stray = self._forget_stray(entry)
            stream = self._streams.get(entry.subscription)
            if stream is None:
                entry.state = "handed"
                continue
            stream.hand(entry)
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
        """The agent has seen a copy of what came meanwhile, if it did."""
        for copy in [each for each in stream.unsettled if each.seq == seq]:
            copy.message = None
            if copy.is_empty:
                self._unbuffer([copy])
                copy.state = "handed"

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
