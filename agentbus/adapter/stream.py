"""One subscription's messages on their way to the agent.

An entry is a message, or a notice that retention or expiry left in its place. It goes

    buffered ──take──▶ writing ──hand_off──▶ handed ──(all before it handed)──▶ settled
        ▲                 │
        └─────restore─────┘     a cancelled call, a write that failed, a line taken back

and only what is settled is reported, since a report covers everything up to its position: what was
handed out of turn (an earlier recv was cancelled) waits for those before it. A memory that was
deleted meanwhile has nothing left to show: its entry counts as handed.

The expiry of a cursor is told once, and acknowledged by a report of exactly the position that it
stopped at; what is buffered of the subscription then is void.

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
from collections.abc import Iterable
from typing import Literal

import msgspec

from agentbus.wire.rpc import Expired, Gap

State = Literal["buffered", "writing", "handed"]
Farewell = Literal["none", "pending", "owed", "said", "told"]


class Entry(msgspec.Struct, eq=False):
    """`seq` is its place in the stream, `position` what to report after it: own messages that
    followed it are passed along. `order` is the order of arrival, over all subscriptions."""

    order: int
    subscription: int
    channel: str
    seq: int
    position: int
    message: bytes | None
    gaps: list[Gap] = []
    expired: list[Expired] = []
    is_memory: bool = False
    state: State = "buffered"

    @property
    def size(self) -> int:
        """Bytes in a result."""
        message = 0 if self.message is None else len(self.message) + 1
        return message + _size(self.gaps) + _size(self.expired)

    @property
    def lost(self) -> int:
        """Messages that were lost before it."""
        return sum(gap.lost for gap in self.gaps)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show any more."""
        return self.message is None and not self.gaps and not self.expired


def untold(gaps: list[Gap], told: int) -> list[Gap]:
    """What is still to be told of these gaps, when so much of their loss was."""
    rest = sum(gap.lost for gap in gaps) - told
    return [msgspec.structs.replace(gaps[0], lost=rest)] if rest > 0 else []


def _size(notices: Iterable[Gap | Expired]) -> int:
    return sum(len(msgspec.json.encode(each)) + 1 for each in notices)


class Stream(msgspec.Struct, eq=False):
    """`settled` >= `reported` >= `confirmed` are positions in the present epoch."""

    channel: str
    settled: int
    reported: int
    confirmed: int
    unsettled: deque[Entry] = msgspec.field(default_factory=deque)
    ahead: dict[int, int] = msgspec.field(default_factory=dict)
    """Places beyond `settled` that were handed, of an earlier epoch, and how much was told as lost
    before each."""

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
            self.ahead.pop(entry.seq, None)
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

    def void(self) -> list[Entry]:
        """A new epoch: what follows the first buffered entry comes again.

        Gives those of it that are being written: they are strays from now on.
        """
        self.forget_reports()
        kept: deque[Entry] = deque()
        strays: list[Entry] = []
        broken = False
        for entry in self.unsettled:
            broken = broken or entry.state == "buffered"
            if not broken:
                kept.append(entry)
            elif entry.state == "handed":
                self.ahead[entry.seq] = entry.lost
            elif entry.state == "writing":
                strays.append(entry)
        self.unsettled = kept
        if self.farewell == "owed":
            self.farewell = "told"
        elif self.farewell == "pending" and not any(entry.expired for entry in kept):
            self.farewell = "none"
        return strays

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
        return self.farewell == "said" and position == self.expired_at

    def leap(self, position: int) -> list[Entry]:
        """Somebody else has handed off up to `position`; gives what is void with that."""
        passed = [entry for entry in self.unsettled if entry.seq <= position]
        self.unsettled = deque(entry for entry in self.unsettled if entry.seq > position)
        self.settled = position
        self.ahead = {seq: lost for seq, lost in self.ahead.items() if seq > position}
        return passed
