"""Tool calls under way: what each waits for, what is tried again, and when it is given up.

    waits for            then
    the link, a claim    its operation is sent (`whoami` answers, `recv` looks into the inbox)
    an answer            the result; `recovering`, `unavailable`: tried again, with longer pauses;
                         `stale_attachment`: once more when the session has registered again
    a message (recv)     the result, or nothing when its time is over

All tries of a call are the same request, with the same operation id, and end 30 s after it came. A
lost connection is no answer: what was asked is asked again, but never of another bus: a reset ends
what had been asked before it. A recv whose answer was taken back goes on as if it had none.

What a session changes is asked for in the order of its calls: behind one that has to be tried
again the next ones wait, until it has its answer.
"""

from __future__ import annotations

from typing import Final

from agentbus.adapter.answers import Answers
from agentbus.adapter.call import Call, Receive, Who, Wish
from agentbus.adapter.link import Link
from agentbus.adapter.operations import Operation, whoami
from agentbus.adapter.receiving import PATIENCE_SECONDS, Receiving, Step
from agentbus.adapter.requests import INBOX, OPERATION_IDS
from agentbus.adapter.session import Session
from agentbus.adapter.sessions import Sessions
from agentbus.client.connection import Answer
from agentbus.errors import AgentbusError, Recovering, StaleAttachment, Unavailable
from agentbus.wire.rpc import HeartbeatParams

RETRY_SECONDS: Final = 30.0
LONGEST_PAUSE: Final = 1.0

STOPPED: Final = "the bus was stopped; call again to have it started"
RESET: Final = (
    "the bus was reset meanwhile: everything on it was destroyed, also what this call may have "
    "done; look at the new bus before you try again"
)


class Calls:
    """All calls under way; `run` after every event lets each go as far as it can."""

    def __init__(self, link: Link, sessions: Sessions, answers: Answers) -> None:
        self._link = link
        self._sessions = sessions
        self._answers = answers
        self._receiving = Receiving(link, sessions, answers, self._reopen)
        self._requests: dict[int, Call] = {}
        self._troubled: set[Session] = set()
        """Sessions that wait, in this run, for an earlier change of theirs."""
        self._closing = False
        self.open: dict[int, Call] = {}

    def add(self, number: int, session: Session, wish: Wish, now: float) -> None:
        """A new call."""
        call = Call(number, session, wish, now + RETRY_SECONDS)
        if isinstance(wish, Receive):
            self._receiving.begin(call, wish, now)
        self.open[number] = call

    def _reopen(self, call: Call) -> None:
        """A recv whose answer was taken back keeps its place among the calls."""
        call.reopened = True
        self.open[call.number] = call
        self.open = dict(sorted(self.open.items()))

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
            stopped = Unavailable(STOPPED)
            if isinstance(call.wish, Receive):  # somebody else may want it in that time
                call.deadline, call.problem = max(now, call.wish.until), stopped
            else:
                self._end(call, stopped)

    def reset(self) -> None:
        """The bus is another than the one that some were asked of."""
        for call in list(self.open.values()):
            if isinstance(call.wish, Operation) and call.asked:
                self._fail(call, Unavailable(RESET))

    # progress

    def run(self, now: float) -> None:
        """Everything that can be done now."""
        self._troubled.clear()
        for call in list(self.open.values()):
            self._step(call, now)
            if _changes(call) and (call.request is None or call.alone) and self._is_open(call):
                self._troubled.add(call.session)

    def _is_open(self, call: Call) -> bool:
        return self.open.get(call.number) is call

    def _step(self, call: Call, now: float) -> None:
        if isinstance(call.wish, Receive):
            if self._closing or call.session.released:
                self.remove(call.number)
                self._receiving.end(call)
                return
            if call.reopened:
                call.reopened = False
                self._receiving.begin(call, call.wish, now)
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
            "the bus daemon did not answer in time; `agentbus status` and its logs tell more"
        )

    def _go(self, call: Call, attachment: str, now: float) -> None:
        match call.wish:
            case Who():
                del self.open[call.number]
                self._answers.answer(call.number, whoami(call.session))
            case Receive():
                self._receive(call, call.wish, now)
            case Operation() as operation:
                if call.request is None and call.retry_at <= now and self._may_ask(call):
                    call.attachment, call.asked = attachment, True
                    self._ask(
                        call, self._link.request(operation.method, operation.params(attachment))
                    )

    def _receive(self, call: Call, wish: Receive, now: float) -> None:
        self._sessions.reports.renew(call.session, now)
        if call.problem is not None:  # the bus was stopped, and is there again
            self._receiving.begin(call, wish, now)
            call.problem = None
        try:
            step = self._receiving.step(call, wish, now)
        except Recovering as error:
            self._end(call, error)
            return
        if step is Step.ANSWERED:
            self.remove(call.number)
        elif step is Step.ASKING:
            self._ask(call, self._link.request("heartbeat", HeartbeatParams()))

    def _may_ask(self, call: Call) -> bool:
        """Counts are those of after what was handed off before; changes keep their order."""
        if call.session in self._troubled and _changes(call):
            call.alone = True
            return False
        counting = isinstance(call.wish, Operation) and call.wish.tool == INBOX
        return not (counting and self._sessions.reports.is_pending(call.session))

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
            self._receiving.synced(call, answer, now)

    def _operated(self, call: Call, operation: Operation, answer: Answer, now: float) -> None:
        if answer.result is not None:
            result = operation.result(call.session, answer.result)
            if isinstance(result, Operation):
                call.wish = result
                return
            del self.open[call.number]
            self._answers.answer(call.number, result)
        elif isinstance(answer.error, Recovering | Unavailable | StaleAttachment):
            self._again(call, answer.error, now)
        elif answer.error is not None:
            self._end(call, answer.error)

    def _again(self, call: Call, error: AgentbusError, now: float) -> None:
        call.problem, call.alone = error, True
        call.retry_at = now + max(call.pause, (error.retry_after_ms or 0) / 1000)
        call.pause = min(2 * call.pause, LONGEST_PAUSE)
        if isinstance(error, StaleAttachment) and call.attachment == call.session.attachment:
            self._sessions.stale(call.session, now)

    def _end(self, call: Call, error: AgentbusError) -> None:
        wish = call.wish
        if isinstance(wish, Operation) and wish.id and error.retryable:
            error = type(error)(
                f"{error.message}; a retry with {OPERATION_IDS[wish.tool]} {wish.id} cannot do it "
                "twice",
                reason=error.reason,
                retry_after_ms=error.retry_after_ms,
            )
        self._fail(call, error)

    def _fail(self, call: Call, error: AgentbusError) -> None:
        self.remove(call.number)
        self._answers.fail(call.number, error)

    # time

    def overslept(self, seconds: float, now: float) -> None:
        """We were stopped for so long: the daemon had no time to answer, and perhaps has none yet.

        How long a recv waits for messages is its caller's affair, who was not stopped with us.
        """
        for call in self.open.values():
            call.deadline = max(call.deadline + seconds, now + PATIENCE_SECONDS)
            call.sync_by += seconds

    def next_time(self, now: float) -> float | None:
        """When `run` should be called although nothing happens."""
        if not self.open:
            return None
        times = [time for call in self.open.values() for time in _times(call) if time > now]
        return min(times, default=None)


def _changes(call: Call) -> bool:
    """Whether it is a send, or changes a memory."""
    return isinstance(call.wish, Operation) and call.wish.id is not None


def _times(call: Call) -> tuple[float, ...]:
    if isinstance(call.wish, Receive):
        return (call.deadline, call.retry_at, call.wish.until)
    return (call.deadline, call.retry_at)
