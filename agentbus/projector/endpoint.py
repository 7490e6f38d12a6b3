"""Getting to the server and keeping an eye on it.

no server ──RedisUp──▶ connecting ──▶ inspecting ──▶ fit
    ▲                     ▲  └──failed───┐  └─ loading: asks again · unfit: told, given up
    └──RedisDown──        └────lost or silent, after a pause──────┘
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from agentbus.errors import RedisIncompatible
from agentbus.mirror.resp import Command
from agentbus.model.ids import CommitId
from agentbus.projector import server
from agentbus.projector.conversation import Conversation, Inspect, Measure, Pending, Purpose
from agentbus.projector.events import Connect, Connected, Disconnect, Disconnected, Replied
from agentbus.projector.outbox import Outbox
from agentbus.projector.server import Loading, Server, Unfit
from agentbus.wire.error_codes import to_failure
from agentbus.wire.links import (
    CONTROL,
    PROJECTOR_GATEWAY,
    RedisStatus,
    RedisUnfit,
    RedisUp,
    SearchBackend,
)

CONNECT: Final = "connect"
INSPECT: Final = "inspect"
WATCH: Final = "watch"
ALARMS: Final = (CONNECT, INSPECT, WATCH)

WATCH_SECONDS: Final = 2.0
LOADING_SECONDS: Final = 0.02
RETRY_SECONDS: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
UNREACHED_SECONDS: Final = 30.0
"""A server that runs but was not to be had for so long is to be replaced."""

_NOBODY: Final = Server("", "", 0, "")


class Endpoint:
    """`on_fit` is called when requests may begin, `on_lost` when they are void, with why."""

    def __init__(
        self, out: Outbox, on_fit: Callable[[], None], on_lost: Callable[[str], None]
    ) -> None:
        self._out = out
        self._on_fit = on_fit
        self._on_lost = on_lost
        self._up: RedisUp | None = None
        self._number = 0
        self._conversation: Conversation | None = None
        self._failures = 0
        self._unreached_since = 0.0
        self._known = _NOBODY
        self._dataset_bytes = 0
        self.is_fit = False

    @property
    def search(self) -> str:
        """What answers searches with this server: `query_engine` or `fts5`."""
        return self._known.search

    @property
    def socket_path(self) -> str | None:
        """Where the streams can be read; None while there is no fit server."""
        return self._up.socket_path if self._up is not None and self.is_fit else None

    # ---- what the supervisor says

    def up(self, up: RedisUp) -> None:
        """The server runs, or another one does."""
        self._hang_up()
        self._up = up
        self._failures = 0
        self._unreached_since = self._out.now
        self._connect()
        self._on_lost("connecting to Redis")

    def down(self, reason: str) -> None:
        """There is no server until the next `up`."""
        self._hang_up()
        self._up = None
        self._on_lost(f"Redis has ended ({reason})")

    # ---- the connection

    def changed(self, event: Connected | Disconnected) -> None:
        """Asks who is there, or tries again after a pause."""
        if event.connection != self._number or self._up is None:
            return
        if isinstance(event, Disconnected):
            self._lost(event.reason)
            return
        self._conversation = Conversation(event.connection)
        self._out.alarm(WATCH, WATCH_SECONDS)
        self._inspect()

    def ask(self, commands: list[Command], purpose: Purpose, round_number: int = 0) -> None:
        """Only while there is a connection."""
        if self._conversation is None:
            return
        self._out.do(self._conversation.ask(commands, purpose, round_number, self._out.now))

    def replied(self, event: Replied) -> Pending | None:
        """The request that was answered, unless it was the endpoint's own or is void."""
        if self._conversation is None or event.connection != self._number:
            return None
        pending = self._conversation.answered()
        match pending.purpose:
            case Inspect():
                self._inspected(event)
            case Measure(ref, commit_id):
                self._dataset_bytes = server.dataset_bytes(event.replies[0])
                self._answer(ref, commit_id)
            case _:
                return pending
        return None

    def ring(self, alarm: str) -> None:
        """One of `ALARMS`."""
        if alarm == CONNECT and self._up is not None:
            self._connect()
        elif alarm == INSPECT:
            self._inspect()
        elif alarm == WATCH and self._conversation is not None:
            self._watch(self._conversation)

    # ---- status

    def measure(self, ref: int, commit_id: CommitId) -> None:
        """Answers the gateway's status question, with fresh numbers where the server answers."""
        if self.is_fit:
            self.ask([server.MEMORY], Measure(ref, commit_id))
        else:
            self._answer(ref, commit_id)

    def _answer(self, ref: int, commit_id: CommitId) -> None:
        known = self._known
        status = RedisStatus(
            ref,
            self.is_fit,
            known.flavour,
            known.version,
            known.pid,
            self._dataset_bytes,
            known.search,
            commit_id,
        )
        self._out.send(PROJECTOR_GATEWAY, status)

    # ---- steps

    def _connect(self) -> None:
        if self._up is not None:
            self._number += 1
            self._out.do(Connect(self._number, self._up.socket_path))

    def _inspect(self) -> None:
        self.ask(server.QUESTIONS, Inspect())

    def _inspected(self, event: Replied) -> None:
        if self._up is None:
            return
        verdict = server.examine(event.replies, self._up)
        self._unreached_since = self._out.now
        match verdict:
            case Loading():
                self._out.alarm(INSPECT, LOADING_SECONDS)
            case Unfit(fatal, error):
                self._give_up(self._up, fatal, error)
            case Server():
                self._known = verdict
                self._failures = 0
                self.is_fit = True
                self._out.send(CONTROL, SearchBackend(verdict.search == "fts5"))
                self._on_fit()

    def _give_up(self, up: RedisUp, fatal: bool, error: RedisIncompatible) -> None:
        self._hang_up()
        self._up = None
        self._out.send(CONTROL, RedisUnfit(up.pid, fatal, to_failure(error)))
        self._on_lost(error.message)

    def _watch(self, conversation: Conversation) -> None:
        self._out.alarm(WATCH, WATCH_SECONDS)
        if conversation.is_overdue(self._out.now):
            self._lost("Redis does not answer")

    def _lost(self, reason: str) -> None:
        if self.is_fit:
            self._unreached_since = self._out.now
        self._hang_up()
        pause = RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)]
        self._failures += 1
        self._out.alarm(CONNECT, pause)
        self._report_unreached()
        self._on_lost(reason)

    def _report_unreached(self) -> None:
        if self._up is None or self._out.now - self._unreached_since < UNREACHED_SECONDS:
            return
        self._unreached_since = self._out.now
        text = f"{self._up.executable} has not answered for {UNREACHED_SECONDS:.0f} s"
        failure = to_failure(RedisIncompatible(text))
        self._out.send(CONTROL, RedisUnfit(self._up.pid, False, failure))

    def _hang_up(self) -> None:
        """Forgets the connection, which is closed by then; the shell closes what is not."""
        conversation, self._conversation = self._conversation, None
        self.is_fit = False
        for alarm in ALARMS:
            self._out.silence(alarm)
        if self._up is not None:
            self._out.do(Disconnect(self._number))
        if conversation is not None:
            for measure in conversation.measures():
                self._answer(measure.ref, measure.commit_id)
