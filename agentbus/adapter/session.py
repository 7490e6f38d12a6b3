"""One session: its claim, its names, its subscriptions, its inbox.

state        event                           next
detached     link ready                      attaching    register
attaching    registered                      attached
             session_already_connected       refused      tried again until the other expires
             another retryable error         refused      tried again
             another error                   detached     `problem`
refused      its time                        attaching    register
attached     stale_attachment, not alive     attaching    register
any          link lost                       detached
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from agentbus.adapter.identity import Caller
from agentbus.adapter.inbox import Inbox
from agentbus.errors import AgentbusError, SessionAlreadyConnected
from agentbus.wire.rpc import RegisterResult, SubscribeResult, Subscription, UnsubscribeResult

EXPIRY_SECONDS: Final = 30.0
"""After so long without a heartbeat another claim on a session has ended."""

FIRST_DELAY: Final = 0.2
LONGEST_DELAY: Final = 2.0


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
        self.facts: RegisterResult | None = None
        self.subscriptions: dict[str, Subscription] = {}
        self.problem: AgentbusError | None = None
        self.fresh_at = 0.0
        """When the claim or its epoch began."""
        self.refused_at: float | None = None
        self.retry_at = 0.0
        self.delay = FIRST_DELAY
        self.renewed_at: float | None = None
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
        self.state = State.REFUSED
        self.retry_at = now + self.delay
        self.delay = min(2 * self.delay, LONGEST_DELAY)

    def lose(self) -> None:
        """The claim is over."""
        self.state = State.DETACHED
        self.inbox.detach()
        self.report_at = None

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

    def current_subscriptions(self) -> list[Subscription]:
        """With the positions that were confirmed last."""
        return [
            msgspec.structs.replace(
                each, position=max(each.position, self.inbox.position(each.subscription) or 0)
            )
            for each in self.subscriptions.values()
        ]
