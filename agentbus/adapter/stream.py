"""One subscription's messages on their way to the agent.

An entry is a message, or a notice that retention or expiry left in its place. It goes

    buffered ──take──▶ writing ──hand_off──▶ handed ──(all before it handed)──▶ settled
        ▲                 │
        └─────restore─────┘     a cancelled call, a write that failed, a line taken back

and only what is settled is reported, since a report covers everything up to its position: what was
handed out of turn (an earlier recv was cancelled) waits for those before it. A memory that was
deleted meanwhile has nothing left to show: its entry counts as handed.

The daemon counts a gap from what was confirmed. What was handed beyond that is `told`; a gap is
shown without it, so that messages and gaps together are each position once.

The expiry of a cursor is told once, and acknowledged by a report of the position that came with it;
what is buffered of the subscription then is void.

    farewell   event                                            next
    none       the daemon tells of the expiry                   pending    (an entry is buffered)
    pending    its entry is handed and settled                  owed
    owed       reported                                         said
    said       confirmed                                        (the subscription is over)
    said       the daemon could not commit it                   owed
    pending    a new epoch, its entry is not on its way         none
    owed, said a new epoch                                      told
    told       the daemon tells of the expiry again             owed

The daemon takes a report of an expired cursor only after having told of it in the same epoch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from agentbus.wire.rpc import Expired, Gap

State = Literal["buffered", "writing", "handed"]
Farewell = Literal["none", "pending", "owed", "said", "told"]


class Told(msgspec.Struct, frozen=True):
    """Of how many messages the agent knows by what was handed off at a place: `itself`, if there
    was one, and those shown as `lost` before it."""

    itself: int = 0
    lost: int = 0

    @property
    def messages(self) -> int:
        """Of both kinds."""
        return self.itself + self.lost


class Entry(msgspec.Struct, eq=False):
    """`seq` is its place in the stream, `position` what to report after it: own messages that
    followed it are passed along. `order` is the order of arrival, over all subscriptions."""

    order: int
    subscription: int
    channel: str
    seq: int
    position: int
    message: bytes | None
    lost: list[Gap] = []
    """Gaps before it, as the daemon counts them; `gaps` is what is shown of them."""
    gaps: list[Gap] = []
    expired: list[Expired] = []
    is_memory: bool = False
    epoch: int = 0
    """In which it came, or came again."""
    state: State = "buffered"

    @property
    def size(self) -> int:
        """Bytes in a result."""
        size = 0 if self.message is None else len(self.message) + 1
        if self.gaps or self.expired:  # which is rare, and asked for with each message
            size += _size(self.gaps) + _size(self.expired)
        return size

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show any more."""
        return self.message is None and not self.lost and not self.expired

    @property
    def told(self) -> Told:
        """What it tells of."""
        lost = sum(gap.lost for gap in self.gaps) if self.gaps else 0
        return Told(int(self.message is not None), lost)


def _size(notices: Iterable[Gap | Expired]) -> int:
    return sum(len(msgspec.json.encode(each)) + 1 for each in notices)


class Stream(msgspec.Struct, eq=False):
    """`settled` >= `reported` >= `confirmed` are positions in the present epoch."""

    channel: str
    settled: int
    reported: int
    confirmed: int
    unsettled: deque[Entry] = msgspec.field(default_factory=deque)
    told: dict[int, Told] = msgspec.field(default_factory=dict)
    """Places beyond `confirmed` that were handed, in this epoch or an earlier one; and those in
    gaps that wait to be shown, since these were counted before that."""

    behind: bool = False
    """Whether the daemon holds more that it will push."""

    stale: bool = False
    """Whether it may hold memories of an earlier epoch."""

    farewell: Farewell = "none"
    expired_at: int = 0
    """Where the cursor stopped, once it has expired."""

    @property
    def last(self) -> int:
        """The last place that is known: what is not beyond it came already."""
        return self.unsettled[-1].seq if self.unsettled else self.settled

    def holds(self, entry: Entry) -> bool:
        """Whether the entry is on its way here, and not a copy of it."""
        return any(entry is each for each in self.unsettled)

    def hand(self, entry: Entry) -> None:
        """The agent has seen it."""
        entry.state = "handed"
        before, new = self.told.get(entry.seq), entry.told
        if before is not None:
            new = Told(before.itself | new.itself, before.lost + new.lost)
        if new.messages:
            self.told[entry.seq] = new

    def count(self, entry: Entry) -> None:
        """What of the gaps before an entry is to be shown with it."""
        entry.gaps = [gap for each in entry.lost if (gap := self._rest(each, entry)) is not None]

    def _rest(self, gap: Gap, entry: Entry) -> Gap | None:
        within = range(gap.after_seq + 1, gap.resumed_at_seq)
        known = {seq: told for seq, told in self.told.items() if seq in within}
        known |= {
            each.seq: each.told
            for each in self.unsettled
            if each.state == "writing" and each is not entry and each.seq in within
        }
        here = self.told.get(entry.seq, Told()).lost
        left = gap.lost - sum(each.messages for each in known.values()) - here
        if left <= 0:
            return None
        after = max([gap.after_seq, *known])
        return msgspec.structs.replace(gap, after_seq=after, lost=left)

    def advance(self, through: int) -> None:
        """Positions without a message for us go with the last message before them."""
        if self.unsettled:
            last = self.unsettled[-1]
            last.position = max(last.position, through)
        else:
            self.settled = max(self.settled, through)

    def settle(self) -> None:
        """Moves over everything that was handed with nothing before it."""
        while self.unsettled and self.unsettled[0].state == "handed":
            entry = self.unsettled.popleft()
            self.settled = max(self.settled, entry.position)
            if entry.expired:
                self.farewell = "owed"

    def expire(self, position: int) -> bool:
        """The cursor has run out there; whether the agent is still to be told."""
        self.expired_at = position
        if self.farewell == "told":
            self.farewell = "owed"
        if self.farewell != "none":
            return False
        self.farewell = "pending"
        self.unsettled = deque(each for each in self.unsettled if each.state != "buffered")
        self.settle()
        return True

    def refresh(self, through: int, messages: Mapping[int, bytes], epoch: int) -> None:
        """What is being written of an earlier epoch comes again as it is now, or not at all: a
        memory may have changed in between."""
        if not self.stale:
            return
        old = [each for each in self.unsettled if each.is_memory and each.epoch < epoch]
        again = [entry for entry in old if entry.seq <= through]
        self.stale = len(again) < len(old)
        for entry in again:
            entry.epoch = epoch
            if entry.state != "handed":
                entry.message = messages.get(entry.seq)

    def void(self) -> list[Entry]:
        """A new epoch: what follows the first buffered entry comes again.

        Gives those of it that are being written: they are strays from now on.
        """
        self.forget_reports()
        self.behind = False
        first = next((each for each in self.unsettled if each.state == "buffered"), None)
        strays = [] if first is None else self.forget(first)
        self.stale = any(each.is_memory for each in self.unsettled)
        if self.farewell == "owed":
            self.farewell = "told"
        elif self.farewell == "pending" and not any(each.expired for each in self.unsettled):
            self.farewell = "none"
        return strays

    def forget(self, first: Entry) -> list[Entry]:
        """This one and what follows it come again; gives the strays, as `void` does."""
        kept: deque[Entry] = deque()
        while self.unsettled[0] is not first:
            kept.append(self.unsettled.popleft())
        gone, self.unsettled = self.unsettled, kept
        return [entry for entry in gone if entry.state == "writing"]

    def take_report(self) -> int | None:
        """The position to report, where there is one that was not; it counts as reported."""
        if self.farewell == "owed":
            self.farewell = "said"
            return self.expired_at
        if self.farewell != "none" or self.settled <= self.reported:
            return None
        self.reported = self.settled
        return self.settled

    def forget_reports(self) -> None:
        """What was reported and not confirmed is due again."""
        self.reported = self.confirmed
        if self.farewell == "said":
            self.farewell = "owed"

    def confirm(self, position: int) -> bool:
        """The daemon has committed this; whether the subscription is over with it."""
        self.confirmed = max(self.confirmed, position)
        waiting = [gap for each in self.unsettled for gap in each.lost]
        self.told = {
            seq: told
            for seq, told in self.told.items()
            if seq > position or any(gap.after_seq < seq < gap.resumed_at_seq for gap in waiting)
        }
        return self.farewell == "said" and position == self.expired_at

    def leap(self, position: int) -> list[Entry]:
        """Somebody else has handed off up to `position`; gives what is void with that."""
        passed = [entry for entry in self.unsettled if entry.seq <= position]
        self.unsettled = deque(entry for entry in self.unsettled if entry.seq > position)
        self.settled = position
        self.told = {seq: told for seq, told in self.told.items() if seq > position}
        return passed
