"""One session: its claim, its names, its subscriptions, what waits for its agent.

state        event                           next
detached     link ready                      attaching    register
attaching    registered                      attached
             session_already_connected       refused      tried again until the other expires
             another retryable error         refused      tried again
             another error                   detached     `problem`
refused      its time                        attaching    register
attached     stale_attachment, not alive     attaching    register
             again, within 10 s              refused      tried again
any          link lost                       detached
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from agentbus.adapter.identity import Caller
from agentbus.adapter.inbox import Batch, Inbox
from agentbus.adapter.notices import Notices, Told
from agentbus.errors import AgentbusError, SessionAlreadyConnected
from agentbus.wire.rpc import RegisterResult, SubscribeResult, Subscription, UnsubscribeResult

EXPIRY_SECONDS: Final = 30.0
"""After so long without a heartbeat another claim on a session has ended."""

NOTICES_PART: Final = 4
"""One of so many parts of a result is kept for notices."""

FIRST_DELAY: Final = 0.2
LONGEST_DELAY: Final = 2.0
SETTLED_SECONDS: Final = 10.0
"""A claim that is over sooner after the last one is not made again at once."""


class Taken(msgspec.Struct, frozen=True, eq=False):
    """What goes into one recv result, until that is written or not; `inbox` is where it is from."""

    inbox: Inbox
    batch: Batch
    told: Told

    def __bool__(self) -> bool:
        return bool(self.batch.entries or self.told.notices)


class State(enum.Enum):
    """See the table."""

    DETACHED = "detached"
    ATTACHING = "attaching"
    REFUSED = "refused"
    ATTACHED = "attached"


class Session:
    """A session that this adapter holds or wants; `Sessions` moves it."""

    def __init__(self, caller: Caller, repository: str | None) -> None:
        self.key = caller.key
        self.role = caller.role
        self.repository = repository
        self.state = State.DETACHED
        self.inbox = Inbox()
        self.notices = Notices()
        self.facts: RegisterResult | None = None
        self.subscriptions: dict[str, Subscription] = {}
        self.problem: AgentbusError | None = None
        self.fresh_at = 0.0
        """When the claim or its epoch began."""
        self.refused_at: float | None = None
        self.retry_at = 0.0
        self.delay = FIRST_DELAY
        self.over_at: float | None = None
        """When a claim turned out to be over last."""
        self.renewed_at: float | None = None
        """When a recv renewed the subscriptions last."""
        self.owes_renewal = False
        """Whether the daemon is still to be told so."""
        self.report_at: float | None = None
        self.released = False

    @property
    def attachment(self) -> str | None:
        """What requests name; None while there is no claim."""
        if self.state is State.ATTACHED and self.facts is not None:
            return self.facts.attachment
        return None

    @property
    def refusal_ends(self) -> float:
        """Until when somebody else's claim is waited out, with room for the last try."""
        if self.refused_at is None or self.state is State.ATTACHED:
            return 0.0
        return self.refused_at + EXPIRY_SECONDS + 2 * LONGEST_DELAY

    def accept(self, result: RegisterResult, now: float) -> None:
        """The claim is made."""
        self.state = State.ATTACHED
        self.fresh_at = now
        self.facts = result
        self.refused_at = None
        if not self._unsettled(now):
            self.delay = FIRST_DELAY
        self.subscriptions = {each.channel: each for each in result.subscriptions}
        self.inbox.attach(result.epoch, result.subscriptions)

    def refuse(self, error: AgentbusError, now: float) -> None:
        """The claim is not made: later, or not at all."""
        claimed = isinstance(error, SessionAlreadyConnected)
        if claimed and self.refused_at is None:
            self.refused_at = now
        expired = self.refused_at is not None and self.refused_at + EXPIRY_SECONDS <= now
        if not error.retryable or (claimed and expired):
            self.state, self.problem = State.DETACHED, error
            return
        self._postpone(now)

    def _postpone(self, now: float) -> None:
        self.state = State.REFUSED
        self.retry_at = now + self.delay
        self.delay = min(2 * self.delay, LONGEST_DELAY)

    def _unsettled(self, now: float) -> bool:
        return self.over_at is not None and now < self.over_at + SETTLED_SECONDS

    def end_claim(self, now: float) -> bool:
        """The claim has turned out to be over; whether the next one is to be made at once. Where a
        daemon forgets one after the other there are growing pauses between them."""
        unsettled, self.over_at = self._unsettled(now), now
        self.lose()
        if unsettled:
            self._postpone(now)
        return not unsettled

    def lose(self) -> None:
        """The claim is over."""
        self.state = State.DETACHED
        self.inbox.detach()
        self.notices.clear()
        self.report_at = None

    def reset(self) -> None:
        """The bus is another: nothing that was held is of it."""
        self.inbox, self.notices = Inbox(), Notices()
        self.subscriptions, self.facts = {}, None
        self.refused_at = self.renewed_at = None
        self.owes_renewal = False

    # what waits for the agent

    @property
    def waiting(self) -> int:
        """Messages, marks and notices that could be taken."""
        return len(self.inbox) + len(self.notices)

    def take(self, limit: int, room: int) -> Taken:
        """What comes next: whole messages, then notices beside them, for which a part of the room
        is kept where there are some."""
        reserved = min(self.notices.size, room // NOTICES_PART)
        batch = self.inbox.take(limit, room - reserved)
        told = self.notices.take(room - batch.size, alone=not batch.entries)
        return Taken(self.inbox, batch, told)

    def restore(self, taken: Taken) -> None:
        """It was not and will not be written."""
        taken.inbox.restore(taken.batch)
        if taken.inbox is self.inbox:
            self.notices.restore(taken.told)

    # its subscriptions

    def subscribed(self, result: SubscribeResult) -> None:
        """A subscription was made, renewed, or found."""
        self.subscriptions[result.channel] = Subscription(
            subscription=result.subscription,
            channel=result.channel,
            position=result.position,
            expires_at=result.expires_at,
            include_own=result.include_own,
        )
        self.inbox.subscribed(result.subscription, result.channel, result.position)

    def unsubscribed(self, result: UnsubscribeResult) -> None:
        """A subscription is gone."""
        self.subscriptions.pop(result.channel, None)
        self.inbox.unsubscribed(result.channel)

    def expired(self, subscription: int) -> None:
        """A cursor has run out."""
        for channel, each in list(self.subscriptions.items()):
            if each.subscription == subscription:
                del self.subscriptions[channel]

    def current_subscriptions(self) -> list[Subscription]:
        """With the positions that were confirmed last."""
        return [
            msgspec.structs.replace(
                each, position=max(each.position, self.inbox.position(each.subscription) or 0)
            )
            for each in self.subscriptions.values()
        ]
