"""One subscription's messages on their way to the agent.

An entry is a message, or a notice that retention or expiry left in its place. It goes

    buffered ──take──▶ writing ──hand_off──▶ handed ──(all before it handed)──▶ settled
        ▲                 │
        └─────restore─────┘     a cancelled call, a write that failed

and only what is settled is reported, since a report covers everything up to its position: what was
handed out of turn (an earlier recv was cancelled) waits for those before it.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

import msgspec

from agentbus.wire.rpc import Expired, Gap

State = Literal["buffered", "writing", "handed"]


class Entry(msgspec.Struct, eq=False):
    """`seq` is its place in the stream, `position` what to report after it: own messages that
    followed it are passed along. `order` is the order of arrival, over all subscriptions."""

    order: int
    subscription: int
    channel: str
    seq: int
    position: int
    message: bytes | None
    gaps: list[Gap]
    expired: list[Expired]
    size: int
    state: State = "buffered"


class Stream(msgspec.Struct, eq=False):
    """`settled` >= `reported` >= `confirmed` are positions in the present epoch."""

    channel: str
    settled: int
    reported: int
    confirmed: int
    unsettled: deque[Entry] = msgspec.field(default_factory=deque)
    ahead: dict[int, None] = msgspec.field(default_factory=dict)
    """Places beyond `settled` that were handed, of an earlier epoch."""

    farewell: Literal["no", "owed", "said"] = "no"
    """Whether the expiry of the cursor was handed off, and that was reported."""

    def is_known(self, seq: int) -> bool:
        """Whether the message came already, or was before all of this."""
        return seq <= (self.unsettled[-1].seq if self.unsettled else self.settled)

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
                self.ahead[entry.seq] = None
            elif entry.state == "writing":
                strays.append(entry)
        self.unsettled = kept
        return strays

    def take_report(self) -> int | None:
        """The position to report, where there is one that was not; it counts as reported."""
        if self.settled <= self.reported and self.farewell != "owed":
            return None
        self.reported = self.settled
        if self.farewell == "owed":
            self.farewell = "said"
        return self.settled

    def forget_reports(self) -> None:
        """What was reported and not confirmed is due again."""
        self.reported = self.confirmed
        if self.farewell == "said":
            self.farewell = "owed"

    def confirm(self, position: int) -> bool:
        """The daemon has committed this; whether the subscription is over with it."""
        self.confirmed = max(self.confirmed, position)
        return self.farewell == "said"

    def leap(self, position: int) -> list[Entry]:
        """Somebody else has handed off up to `position`; gives what is void with that."""
        passed = [entry for entry in self.unsettled if entry.seq <= position]
        self.unsettled = deque(entry for entry in self.unsettled if entry.seq > position)
        self.settled = position
        self.ahead = {seq: None for seq in self.ahead if seq > position}
        return passed
