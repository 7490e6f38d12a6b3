"""How the messages of a subscription reach its adapter: each one once and in order, per epoch.

Positions of a channel are 1, 2, 3 ... A subscription divides them:

    handed off           outstanding           not pushed yet
    ----------|--------------------------|----------------------|
              reported                   pushed                 top

What is outstanding fills the adapter's window; a report frees it by position. A message is pushed
when it becomes visible, without reading the stream, if and only if the subscription is live and
the message is `pushed` + 1. Whatever cannot be pushed so makes the subscription lag: whenever there
is room, what follows on `pushed` is pushed from what is remembered of the stream, or read from it.
It is live again when the last
position read reaches `top` as it is when the reply is dealt with; what became visible during the
read is thereby either in the reply or raised `top` above it. Positions at or below `pushed` are
dropped wherever they come from. So nothing is skipped and nothing comes twice, in whatever order
messages, replies and reports arrive.

    LIVE        everything visible is pushed
    LAGGING     the stream holds more; a read waits for its turn and for room in the window
    REFILLING   a read is under way, or the question how much retention has removed
    STALLED     the read failed, or found nothing that follows; another is tried a little later

    state      | fell behind | read began | caught up | read ended | read useless | retried
    -----------+-------------+------------+-----------+------------+--------------+--------
    LIVE       | LAGGING     |            |           |            |              |
    LAGGING    |             | REFILLING  | LIVE      |            |              |
    REFILLING  |             |            | LIVE      | LAGGING    | STALLED      |
    STALLED    |             |            | LIVE      |            |              | LAGGING

A new epoch starts over after the last position that is confirmed, as LIVE and then compared with
`top`. Its reports may name positions that it has not pushed: they were handed off before, and need
not be pushed again.

Own messages are passed over: `through` of the next push, or `passable`, carries the cursor past
them. A hole stops the push, as a message may not be there *yet*, with two exceptions. Where the
channel may have holes (deleted memories), a read passes over them, and over all that was missing
at its end when it began. Below the channel's `oldest` position retention has removed what is
missing; how much of that was not the session's own only the database knows. So it is asked
(`is_cut`), and what it says (`told`) is a gap before the messages that follow, if there are any.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

from agentbus.model.ids import Seq, SessionId, SubscriptionId
from agentbus.model.outstanding import Outstanding
from agentbus.model.stream import Entry, Lost, Push, Run, Stream
from agentbus.model.window import Share


class State(Enum):
    """Of a subscription; see the theory above."""

    LIVE = "live"
    LAGGING = "lagging"
    REFILLING = "refilling"
    STALLED = "stalled"


class Turn(Enum):
    """What changes a state."""

    FELL_BEHIND = "fell behind"
    READ_BEGAN = "read began"
    CAUGHT_UP = "caught up"
    READ_ENDED = "read ended"
    READ_USELESS = "read useless"
    RETRIED = "retried"
    RESTARTED = "restarted"


TURNS: Final[dict[tuple[State, Turn], State]] = {
    (State.LIVE, Turn.FELL_BEHIND): State.LAGGING,
    (State.LAGGING, Turn.READ_BEGAN): State.REFILLING,
    (State.LAGGING, Turn.CAUGHT_UP): State.LIVE,
    (State.REFILLING, Turn.CAUGHT_UP): State.LIVE,
    (State.REFILLING, Turn.READ_ENDED): State.LAGGING,
    (State.REFILLING, Turn.READ_USELESS): State.STALLED,
    (State.STALLED, Turn.CAUGHT_UP): State.LIVE,
    (State.STALLED, Turn.RETRIED): State.LAGGING,
    **{(state, Turn.RESTARTED): State.LIVE for state in State},
}


class Delivery:
    """One subscription of one attachment. Positions only grow within an epoch."""

    __slots__ = (
        "_full",
        "_outstanding",
        "_read",
        "_read_top",
        "_settled",
        "_share",
        "confirmed",
        "id",
        "include_own",
        "pushed",
        "session_id",
        "state",
        "stream",
    )

    def __init__(
        self,
        subscription: SubscriptionId,
        session_id: SessionId,
        position: Seq,
        stream: Stream,
        share: Share,
        *,
        include_own: bool = False,
    ) -> None:
        self.id = subscription
        self.session_id = session_id
        self.stream = stream
        self.include_own = include_own
        self.confirmed = position
        """The durable cursor, as far as it is known."""
        self._share = share
        self._outstanding = Outstanding(share)
        self.pushed = position
        self._settled = position
        """How far the writer knows, or will, that nothing is outstanding."""
        self._read = 0
        self._read_top = Seq(0)
        """`top` when the read began: there was nothing above."""
        self._full = False
        self.state = State.LIVE
        self._compare()

    # ---- what it tells

    @property
    def outstanding(self) -> int:
        """Messages (and gaps) pushed and not reported."""
        return len(self._outstanding)

    def could_have(self, position: int) -> bool:
        """Whether there may ever have been a message at this position to hand off."""
        return position <= max(self.stream.top, self.stream.stored, self.pushed)

    @property
    def undelivered(self) -> int:
        """Messages not reported; exact when live, else own and removed ones may be in it."""
        return self._outstanding.messages + self.lag

    @property
    def is_cut(self) -> bool:
        """Whether retention has removed what follows: the database is to be asked how much."""
        return self.stream.dense and self.pushed + 1 < self.stream.oldest

    @property
    def lag(self) -> int:
        """Positions that are visible and not pushed."""
        return max(0, self.stream.top - self.pushed)

    @property
    def oldest_undelivered(self) -> Seq | None:
        """Position of the oldest message not reported (when lagging, maybe an own one)."""
        if self._outstanding:
            return self._outstanding.first
        return Seq(self.pushed + 1) if self.lag else None

    def passable(self) -> Seq | None:
        """A position that nothing has to be delivered up to, where the writer does not know it."""
        if self._outstanding or self.pushed <= self._settled:
            return None
        return self.pushed

    @property
    def starving(self) -> bool:
        """Whether a message is admitted even though the window is full."""
        return not self._share.messages

    # ---- what happens to it

    def visible(self, run: Run) -> Push | None:
        """Messages became visible, and `stream.top` has been raised to the last of them, or to the
        last of those that are told next."""
        if self.state is not State.LIVE or run.last <= self.pushed:
            return None
        push = self._take(run)
        if self.pushed < run.last:
            self._compare()
        return push

    def remembered(self, run: Run) -> Push:
        """The messages of a run that follow while it lags, as a read would have brought them."""
        push = self._take(run)
        self._compare()
        return push

    def read_began(self, ref: int) -> None:
        """The stream is being read after `pushed`, or the database is being asked what it has lost
        there; the reply will carry `ref`."""
        self._read = ref
        self._read_top = self.stream.top
        self._turn(Turn.READ_BEGAN)

    def refilled(self, ref: int, entries: Sequence[Entry], *, at_end: bool = False) -> Push | None:
        """The reply to a read; no entries where it failed. Replies to forgotten reads are None.

        `at_end` tells that the stream has been read to its end.
        """
        if ref != self._read:
            return None
        before = self.pushed
        push = self._push(entries, bridging=not self.stream.dense)
        if at_end and not self.stream.dense and not self._full:
            self.pushed = max(self.pushed, self._read_top)
        self._read_ended(useful=self.pushed > before or self._full)
        return Push(self.pushed, push.entries)

    def told(self, ref: int, after: Seq, resumed_at: Seq, lost: int) -> Push | None:
        """The database's answer: the next message after that position, and how many were lost."""
        if ref != self._read:
            return None
        if after != self.pushed:  # a report has moved it: what was asked is not the question now
            self._read_ended(useful=True)
            return None
        if lost:
            self._outstanding.push_gap(Seq(resumed_at - 1))
        self.pushed = max(self.pushed, Seq(resumed_at - 1))
        self._read_ended(useful=self.pushed > after)
        return Push(self.pushed, (), [Lost(after, resumed_at, lost)] if lost else ())

    def _read_ended(self, *, useful: bool) -> None:
        self._read = 0
        if self.pushed >= self.stream.top:
            self._turn(Turn.CAUGHT_UP)
        else:
            self._turn(Turn.READ_ENDED if useful else Turn.READ_USELESS)

    def retried(self) -> None:
        """Time has passed since a read was useless."""
        if self.state is State.STALLED:
            self._turn(Turn.RETRIED)

    def admits(self, run: Run) -> bool:
        """Whether the window has room for all of it."""
        return self._share.window.admits(len(run.weights), run.bytes)

    def raised(self) -> None:
        """`stream.top` may have moved without its messages having been shown to us."""
        self._compare()

    def reported(self, position: Seq) -> int:
        """Everything up to a position was handed off; the number of messages this freed."""
        messages = self._outstanding.free(position)
        if position > self._settled:
            self._settled = position
        if position > self.pushed:
            self.pushed = position
        self._compare()
        return messages

    def revised(self, position: Seq, size: int | None) -> bool:
        """A message has another content now, of this size, or is none any more (None); whether it
        is outstanding, so that the adapter must be told."""
        return self._outstanding.revise(position, size)

    def passed(self, position: Seq) -> None:
        """The writer has been told of a `passable` position."""
        self._settled = max(self._settled, position)

    def committed(self, position: Seq) -> None:
        """The writer has confirmed a report of this position."""
        self.confirmed = max(self.confirmed, position)

    def restart(self) -> None:
        """A new epoch: what is outstanding is void."""
        self.end()
        self.pushed = self._settled = self.confirmed
        self._turn(Turn.RESTARTED)
        self._compare()

    def end(self) -> None:
        """Gives back the room it holds in the window."""
        self._outstanding.clear()

    # ---- how

    def _turn(self, turn: Turn) -> None:
        self.state = TURNS[self.state, turn]
        if self.state is not State.REFILLING:
            self._read = 0

    def _compare(self) -> None:
        if self.state is State.LIVE:
            if self.pushed < self.stream.top:
                self._turn(Turn.FELL_BEHIND)
        elif self.pushed >= self.stream.top:
            self._turn(Turn.CAUGHT_UP)

    def _take(self, run: Run) -> Push:
        if not self._takes_whole(run):
            return self._push(run.entries, bridging=False)
        self._outstanding.push(run.weights, run.bytes)
        self.pushed = run.last
        return Push(run.last, run.entries)

    def _takes_whole(self, run: Run) -> bool:
        return (
            run.first == self.pushed + 1
            and run.consecutive
            and self.stream.dense  # else one of them may be revised
            and (self.include_own or self.session_id not in run.senders)
            and self.admits(run)
        )

    def _push(self, entries: Sequence[Entry], *, bridging: bool) -> Push:
        """Takes entries one by one, until a hole that is in the way or the window is full."""
        taken: list[Entry] = []
        self._full = False
        for entry in entries:
            if entry.seq <= self.pushed:
                continue
            if entry.seq != self.pushed + 1 and not bridging:
                break
            if self.include_own or entry.session_id != self.session_id:
                size = len(entry.envelope)
                if not self._share.admits(size):
                    self._full = True
                    break
                self._outstanding.push(((entry.seq, size),), size)
                taken.append(entry)
            self.pushed = entry.seq
        return Push(self.pushed, taken)
