"""The way to the daemon: connected, greeted, kept alive, started when nobody is there.

    state        event                     next         with
    idle         begin, wanted, its time   connecting   Connect
    connecting   connected                 greeting     hello
                 unreachable               starting     StartDaemon, if it may be started
                 unreachable               idle         tried again later
    starting     started                   connecting   Connect
                 not started               idle         the error
                 nothing for too long      connecting   Connect
    greeting     hello accepted            ready
                 hello refused             idle         Disconnect, the error
    any          closed                    idle         tried again at once

A daemon that said it was stopping on purpose, or that keeps crashing, is not started again before
somebody wants it (`wanted`: an agent called a tool); until then we only look now and then whether
somebody else did.
An error that another try cannot mend is `problem`: whoever wants the daemon is told, and the next
who wants it makes us try again.
"""

from __future__ import annotations

import enum
from collections import deque
from typing import Final

from agentbus import __version__
from agentbus.adapter.events import Connect, Disconnect, Effect, StartDaemon, WriteDaemon
from agentbus.client.connection import Answer, Connection, Incoming
from agentbus.config import Configuration
from agentbus.errors import AgentbusError, Recovering, Unavailable
from agentbus.wire.rpc import (
    PROTOCOL,
    HeartbeatParams,
    HelloParams,
    HelloResult,
    Params,
    StoppingNote,
)

HEARTBEAT_SECONDS: Final = 10.0
SILENCE_SECONDS: Final = 30.0
"""A daemon that answers no heartbeat for so long is as good as gone."""

FIRST_DELAY: Final = 0.02
LONGEST_DELAY: Final = 1.0

FAILING_DELAY: Final = 30.0
"""The longest between starts that fail, while nobody asks for anything: each costs a second of
processors, and what ends them may go on for hours."""

STARTING_SECONDS: Final = 60.0
"""A starting daemon that has not reported for so long is looked for without its report."""

TOLERATED: Final = 5
CRASHING_SECONDS: Final = 60.0
"""A daemon that was lost more often than `TOLERATED` in this time keeps crashing: so often, it ends
itself, and cannot tell us where its gateway is what dies."""

LOOKING_SECONDS: Final = 5.0
"""Between looks whether somebody else has started a daemon that we may not start."""


class State(enum.Enum):
    """See the table."""

    IDLE = "idle"
    CONNECTING = "connecting"
    STARTING = "starting"
    GREETING = "greeting"
    READY = "ready"


class Link:
    """Appends what is to be done to `effects`."""

    def __init__(self, effects: list[Effect]) -> None:
        self._effects = effects
        self.state = State.IDLE
        self.instance: str | None = None
        self.daemon_state = "starting"
        self.problem: AgentbusError | None = None
        self._connection = Connection()
        self.may_start = True
        """Not after an intentional stop or too many crashes, until somebody wants the daemon."""
        self._losses: deque[float] = deque(maxlen=TOLERATED + 1)
        self._delay = FIRST_DELAY
        self._due: float | None = None
        self._problem_until = 0.0
        self._problem_told = False
        self._hello = 0
        self._beat_at = 0.0
        self._heard_at = 0.0

    @property
    def ready(self) -> bool:
        """Whether requests can be made."""
        return self.state is State.READY

    @property
    def next_time(self) -> float | None:
        """When `woke` is due."""
        match self.state:
            case State.READY:
                return min(self._beat_at, self._heard_at + SILENCE_SECONDS)
            case State.GREETING:
                return self._heard_at + SILENCE_SECONDS
            case _:
                return self._due

    # what is wanted

    def begin(self) -> None:
        """At start: the daemon is started early, so that the first call is quick."""
        self._connect()

    def wanted(self, now: float) -> AgentbusError | None:
        """Somebody asks for something: the error to tell at once, or None where trying helps."""
        if self.state is not State.IDLE:
            return None
        problem, self.problem = self.problem, None
        if problem is not None and now < self._problem_until:
            if not self._problem_told:
                self._problem_told, self.problem = True, problem
                return problem
            self._due = self._problem_until  # whoever asks again may have done what it said
        self.may_start = True
        if self._due is None or self._due > now + LONGEST_DELAY:
            self._connect()
        return None

    def request(self, method: str, params: Params) -> int:
        """Sends a request; its answer comes with the number. Only while `ready`."""
        number, line = self._connection.request(method, params)
        self._effects.append(WriteDaemon(line))
        return number

    # what happens

    def connected(self, configuration: Configuration, now: float) -> None:
        """The shell has a connection."""
        self._move(State.GREETING)
        self._connection = Connection()
        self._heard_at = now
        self._hello = self.request(
            "hello",
            HelloParams(
                protocol=PROTOCOL,
                version=__version__,
                fingerprint=configuration.settings.fingerprint(),
                config_path=configuration.path,
            ),
        )

    def unreachable(self, error: AgentbusError | None, now: float) -> None:
        """The shell found nobody, or may not connect."""
        if error is not None:
            self._give_up(error, now)
        elif self.may_start:
            self._move(State.STARTING)
            self._due = now + STARTING_SECONDS
            self._effects.append(StartDaemon())
        else:
            self._rest(now, LOOKING_SECONDS)

    def started(self, error: AgentbusError | None, now: float) -> None:
        """The daemon that we started is ready, or could not start."""
        if self.state is not State.STARTING:
            return
        if error is None:
            self._connect()
        else:
            self._give_up(error, now, FAILING_DELAY)

    def closed(self, now: float) -> None:
        """The connection is gone."""
        self._losses.append(now)
        if len(self._losses) > TOLERATED and now - self._losses[0] < CRASHING_SECONDS:
            self.may_start = False
        self._back_off(now)

    def feed(self, data: bytes, now: float) -> list[Incoming]:
        """What the daemon says to others than this. Raises InternalError on what it cannot say."""
        self._heard_at = now
        incoming = []
        for each in self._connection.feed(data):
            if isinstance(each, Answer) and each.request == self._hello:
                self._greeted(each, now)
            else:
                incoming.append(each)
        return incoming

    def stopping(self, note: StoppingNote) -> None:
        """The daemon is about to end."""
        if note.intentional:
            self.may_start = False

    def broken(self, now: float) -> None:
        """The daemon talks nonsense, or is silent: begin anew."""
        self._effects.append(Disconnect())
        self._back_off(now)

    def woke(self, now: float) -> None:
        """What is due is done."""
        if self._due is not None and self._due <= now:
            self._connect()
        elif self.state is State.READY and self._beat_at <= now:
            self._beat_at = now + HEARTBEAT_SECONDS
            self.request("heartbeat", HeartbeatParams())

    def overslept(self, seconds: float) -> None:
        """We were stopped for so long: it was not the daemon that was silent."""
        self._heard_at += seconds

    def is_silent(self, now: float) -> bool:
        """Whether the daemon should be given up."""
        speaks = self.state in (State.READY, State.GREETING)
        return speaks and self._heard_at + SILENCE_SECONDS <= now

    # transitions

    def _greeted(self, answer: Answer, now: float) -> None:
        if isinstance(answer.result, HelloResult):
            self._move(State.READY)
            self.instance = answer.result.instance
            self.daemon_state = answer.result.state
            self.problem = None
            self.may_start = True
            self._delay = FIRST_DELAY
            self._beat_at = now + HEARTBEAT_SECONDS
            return
        self._effects.append(Disconnect())
        self._give_up(answer.error or Unavailable("the daemon did not greet back"), now)

    def _connect(self) -> None:
        self._move(State.CONNECTING)
        self._effects.append(Connect())

    def _give_up(self, error: AgentbusError, now: float, longest: float = LONGEST_DELAY) -> None:
        """For the moment, or until somebody asks again where another try would not help."""
        if isinstance(error, Recovering | Unavailable):
            self._back_off(now, longest)
            return
        self.problem, self._problem_until = error, now + LONGEST_DELAY
        self._problem_told = False
        self.may_start = False
        self._rest(now, LOOKING_SECONDS)

    def _back_off(self, now: float, longest: float = LONGEST_DELAY) -> None:
        self._rest(now, self._delay if self.may_start else LOOKING_SECONDS)
        self._delay = min(2 * self._delay, longest)

    def _rest(self, now: float, seconds: float) -> None:
        self._move(State.IDLE)
        self._due = now + seconds

    def _move(self, state: State) -> None:
        self.state = state
        self._due = None
