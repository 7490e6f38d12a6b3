"""What a recv does next.

there is something to show    it is answered
its time is not over          it waits
its time is over              the daemon is asked whether something is on its way, again and
                              again for a bounded time; then it is answered, with nothing
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final

from agentbus.adapter import results
from agentbus.adapter.answers import Answers, Handoff
from agentbus.adapter.call import Call, Receive
from agentbus.adapter.inbox import Batch
from agentbus.adapter.link import Link
from agentbus.adapter.notices import Told
from agentbus.adapter.session import Taken
from agentbus.adapter.sessions import Sessions
from agentbus.client.connection import Answer
from agentbus.errors import Recovering
from agentbus.wire.rpc import HeartbeatResult

PATIENCE_SECONDS: Final = 10.0
"""What a recv grants the daemon to start and to register, however short its own wait is."""

SYNC_SECONDS: Final = 2.0
FIRST_SYNC_PAUSE: Final = 0.002
LONGEST_SYNC_PAUSE: Final = 0.05
FRESH_SECONDS: Final = 0.3
"""A claim or epoch so young may have deliveries on their way that nobody knows of."""


class Step(enum.Enum):
    """What has become of a recv."""

    ANSWERED = "answered"
    WAITING = "waiting"
    ASKING = "asking"


class Receiving:
    """Answers calls of recv; `again` is told of one whose answer was taken back."""

    def __init__(
        self, link: Link, sessions: Sessions, answers: Answers, again: Callable[[Call], None]
    ) -> None:
        self._link = link
        self._sessions = sessions
        self._answers = answers
        self._again = again

    @staticmethod
    def begin(call: Call, wish: Receive, now: float) -> None:
        """A new call, or one that begins anew."""
        call.deadline = max(wish.until + SYNC_SECONDS, now + PATIENCE_SECONDS)
        call.pause, call.retry_at = FIRST_SYNC_PAUSE, 0.0
        call.synced, call.target, call.request = False, None, None

    def step(self, call: Call, wish: Receive, now: float) -> Step:
        """As far as it gets now. Raises Recovering instead of answering with nothing."""
        session = call.session
        if self._answers.is_taking_back(session):
            return Step.WAITING  # what comes later in the stream must not overtake it
        full = len(session.inbox) > 0 and self._sessions.window_is_full
        taken = session.take(wish.limit, wish.ceiling - results.FRAME)
        over = wish.until <= now and call.synced
        if taken or (over and self._link.daemon_state not in ("starting", "recovering")):
            more = session.waiting > 0 or session.inbox.behind or full
            self._answer(call, taken, wish.ceiling, more=more)
            return Step.ANSWERED
        session.restore(taken)
        if over:
            raise Recovering("the bus is recovering; messages will come when it is done")
        if wish.until > now or call.request is not None or call.retry_at > now:
            return Step.WAITING
        return Step.ASKING

    def _answer(self, call: Call, taken: Taken, ceiling: int, *, more: bool) -> None:
        shown = results.received(taken.batch, taken.told, ceiling, more=more)
        handoff = Handoff(call.session, taken, lambda: self._again(call))
        self._answers.answer(call.number, shown, handoff)

    def end(self, call: Call) -> None:
        """Nothing is handed off: the session was released, or nobody reads any more."""
        more = not call.session.released and call.session.waiting > 0
        self._answers.answer(call.number, results.received(Batch([]), Told([]), 0, more=more))

    def synced(self, call: Call, answer: Answer, now: float) -> None:
        """Whether something is on its way to a recv that has waited long enough."""
        result = answer.result
        lagging = False
        if isinstance(result, HeartbeatResult):
            self._link.daemon_state = result.state
            if call.target is None:
                call.target, call.sync_by = result.accepted, now + SYNC_SECONDS
            fresh = call.session.fresh_at + FRESH_SECONDS > now
            lagging = fresh if result.lagging is None else result.lagging
            lagging = lagging or result.visible < call.target
        if lagging and now < call.sync_by:
            call.retry_at = now + call.pause
            call.pause = min(2 * call.pause, LONGEST_SYNC_PAUSE)
        else:
            call.synced = True
            call.session.inbox.caught_up()
