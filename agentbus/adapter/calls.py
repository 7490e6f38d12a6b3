"""Tool calls under way: what each waits for, what is tried again, and when it is given up.

    waits for            then
    the link, a claim    its operation is sent (`whoami` answers, `recv` looks into the inbox)
    an answer            the result; `recovering`, `unavailable`: tried again, with longer pauses;
                         `stale_attachment`: once more when the session has registered again
    a message (recv)     the result, or nothing when its time is over

All tries of a call are the same request, with the same message id, and end 30 s after it came. A
lost connection is no answer: what was asked is asked again.
"""

from __future__ import annotations

from typing import Final

import msgspec

from agentbus.adapter import results
from agentbus.adapter.answers import Answers, Handoff
from agentbus.adapter.inbox import Batch
from agentbus.adapter.link import Link
from agentbus.adapter.operations import Operation, whoami
from agentbus.adapter.session import Session
from agentbus.adapter.sessions import Sessions
from agentbus.client.connection import Answer
from agentbus.errors import AgentbusError, Recovering, StaleAttachment, Unavailable
from agentbus.wire.rpc import HeartbeatParams, HeartbeatResult

RETRY_SECONDS: Final = 30.0
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 1.0

PATIENCE_SECONDS: Final = 10.0
"""What a recv grants the daemon to start and to register, however short its own wait is."""

SYNC_SECONDS: Final = 2.0
FIRST_SYNC_PAUSE: Final = 0.002
LONGEST_SYNC_PAUSE: Final = 0.05
FRESH_SECONDS: Final = 0.3
"""A claim or epoch so young may have deliveries on their way that nobody knows of."""


class Receive(msgspec.Struct, frozen=True):
    """A recv's wishes: entries, bytes, and until when it waits for a first message."""

    limit: int
    ceiling: int
    until: float


class Who(msgspec.Struct, frozen=True):
    """A `whoami`."""


class Call(msgspec.Struct, eq=False):
    """A call that was not answered.

    `request` is the daemon's number of the try under way; `problem` is why the last one failed.
    """

    number: int
    session: Session
    wish: Operation | Receive | Who
    deadline: float
    request: int | None = None
    attachment: str | None = None
    retry_at: float = 0.0
    pause: float = FIRST_PAUSE
    problem: AgentbusError | None = None
    synced: bool = False
    """A recv whose time is over knows that nothing is on its way."""

    target: int | None = None
    """The commit that has to be visible for that, if it is by `sync_by`."""

    sync_by: float = 0.0


class Calls:
    """All calls under way; `run` after every event lets each go as far as it can."""

    def __init__(self, link: Link, sessions: Sessions, answers: Answers) -> None:
        self._link = link
        self._sessions = sessions
        self._answers = answers
        self._requests: dict[int, Call] = {}
        self._closing = False
        self.open: dict[int, Call] = {}

    def add(
        self, number: int, session: Session, wish: Operation | Receive | Who, now: float
    ) -> None:
        """A new call."""
        call = Call(number, session, wish, now + RETRY_SECONDS)
        if isinstance(wish, Receive):
            call.deadline = max(wish.until + SYNC_SECONDS, now + PATIENCE_SECONDS)
            call.pause = FIRST_SYNC_PAUSE
        self.open[number] = call

    def remove(self, number: int) -> None:
        """Nobody wants the answer any more; what the daemon was asked it still does."""
        call = self.open.pop(number, None)
        if call is not None and call.request is not None:
            self._requests.pop(call.request, None)

    def close(self) -> None:
        """The harness has ended its side: nothing is handed off from now on."""
        self._closing = True

    def link_lost(self, *, may_return: bool, now: float) -> None:
        """What was asked is asked again, unless the daemon was stopped on purpose."""
        self._requests.clear()
        for call in list(self.open.values()):
            call.request = call.target = None
            call.synced = False
            if may_return:
                continue
            if isinstance(call.wish, Receive):
                call.deadline = max(now, call.wish.until)
            else:
                self._end(call, Unavailable("the bus was stopped; call again to have it started"))

    # progress

    def run(self, now: float) -> None:
        """Everything that can be done now."""
        for call in list(self.open.values()):
            self._step(call, now)

    def _step(self, call: Call, now: float) -> None:
        receiving = isinstance(call.wish, Receive)
        if receiving and (self._closing or call.session.released):
            self._receive_nothing(call)
            return
        problem = self._hopeless(call, now)
        if problem is not None:
            self._end(call, problem)
        elif call.session.attachment is not None:
            self._go(call, call.session.attachment, now)

    def _hopeless(self, call: Call, now: float) -> AgentbusError | None:
        session = call.session
        if session.released and call.request is None:
            return Unavailable("the harness has moved to another conversation meanwhile")
        if session.attachment is None and session.problem is not None:
            return session.problem
        if self._link.problem is not None:
            return self._link.problem
        if now < max(call.deadline, session.refusal_ends):
            return None
        return call.problem or Unavailable(
            "the bus daemon did not answer in time; `agentbus status` and `agentbus doctor` tell "
            "more"
        )

    def _go(self, call: Call, attachment: str, now: float) -> None:
        match call.wish:
            case Who():
                del self.open[call.number]
                self._answers.answer(call.number, whoami(call.session))
            case Receive():
                self._receive(call, call.wish, now)
            case Operation() as operation:
                if call.request is None and call.retry_at <= now:
                    call.attachment = attachment
                    self._ask(
                        call, self._link.request(operation.method, operation.params(attachment))
                    )

    def _ask(self, call: Call, request: int) -> None:
        call.request = request
        self._requests[request] = call

    def answered(self, answer: Answer, now: float) -> None:
        """Takes the answer if a call asked for it."""
        call = self._requests.pop(answer.request, None)
        if call is None:
            return
        call.request = None
        if isinstance(call.wish, Operation):
            self._operated(call, call.wish, answer, now)
        else:
            self._synced(call, answer, now)

    def _operated(self, call: Call, operation: Operation, answer: Answer, now: float) -> None:
        if answer.result is not None:
            del self.open[call.number]
            self._answers.answer(call.number, operation.result(call.session, answer.result))
        elif isinstance(answer.error, Recovering | Unavailable | StaleAttachment):
            self._again(call, answer.error, now)
        elif answer.error is not None:
            self._end(call, answer.error)

    def _again(self, call: Call, error: AgentbusError, now: float) -> None:
        call.problem = error
        call.retry_at = now + max(call.pause, (error.retry_after_ms or 0) / 1000)
        call.pause = min(2 * call.pause, LONGEST_PAUSE)
        if isinstance(error, StaleAttachment) and call.attachment == call.session.attachment:
            self._sessions.stale(call.session)

    def _end(self, call: Call, error: AgentbusError) -> None:
        self.remove(call.number)
        if isinstance(call.wish, Operation) and call.wish.message_id and error.retryable:
            error = type(error)(
                f"{error.message}; a retry with message_id {call.wish.message_id} cannot post it "
                "twice",
                reason=error.reason,
                retry_after_ms=error.retry_after_ms,
            )
        self._answers.fail(call.number, error)

    # recv

    def _receive(self, call: Call, wish: Receive, now: float) -> None:
        session = call.session
        self._sessions.reports.renew(session, now)
        if self._answers.is_taking_back(session):
            return  # what comes later in the stream must not overtake it
        batch = session.inbox.take(wish.limit, wish.ceiling - results.FRAME)
        if batch.entries:
            self.remove(call.number)
            more = len(session.inbox) > 0
            shown = results.received(batch, wish.ceiling, more=more)
            self._answers.answer(call.number, shown, Handoff(session, batch))
        elif wish.until > now:
            return
        elif call.synced:
            self._found_nothing(call)
        elif call.request is None and call.retry_at <= now:
            self._ask(call, self._link.request("heartbeat", HeartbeatParams()))

    def _synced(self, call: Call, answer: Answer, now: float) -> None:
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

    def _found_nothing(self, call: Call) -> None:
        if self._link.daemon_state in ("starting", "recovering"):
            error = Recovering("the bus is recovering; messages will come when it is done")
            self._end(call, error)
        else:
            self._receive_nothing(call)

    def _receive_nothing(self, call: Call) -> None:
        self.remove(call.number)
        more = not call.session.released and len(call.session.inbox) > 0
        self._answers.answer(call.number, results.received(Batch([]), 0, more=more))

    # time

    def next_time(self, now: float) -> float | None:
        """When `run` should be called although nothing happens."""
        times = [time for call in self.open.values() for time in _times(call) if time > now]
        return min(times, default=None)


def _times(call: Call) -> tuple[float, ...]:
    if isinstance(call.wish, Receive):
        return (call.deadline, call.retry_at, call.wish.until)
    return (call.deadline, call.retry_at)
