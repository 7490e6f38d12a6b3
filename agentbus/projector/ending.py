"""The orderly end: the last commits are in, Redis writes its snapshot, all within a time limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from agentbus.errors import AgentbusError
from agentbus.mirror.resp import Command, Refused, Reply
from agentbus.projector import server
from agentbus.projector.conversation import Purpose, Save, Settle
from agentbus.projector.outbox import Outbox
from agentbus.projector.server import Persistence
from agentbus.runtime import exits
from agentbus.wire.error_codes import to_failure
from agentbus.wire.events import Exit
from agentbus.wire.links import CONTROL, Failing, Stop

GIVE_UP: Final = "give up"
SETTLE: Final = "settle"

STOP_SECONDS: Final = 30.0
SETTLE_SECONDS: Final = 0.05

Asker = Callable[[list[Command], Purpose], None]


class Ending:
    """Nothing until `begin`; `is_settling` from when there is nothing more to write."""

    def __init__(self, out: Outbox, ask: Asker) -> None:
        self._out = out
        self._ask = ask
        self._stop: Stop | None = None
        self.is_settling = False

    def begin(self, stop: Stop) -> None:
        """Starts the time limit."""
        self._stop = stop
        self._out.alarm(GIVE_UP, STOP_SECONDS)

    def current(self) -> None:
        """Redis equals the database: what remains is its snapshot."""
        self.is_settling = True
        if self._stop is not None and self._stop.snapshot:
            self.settle()
        else:
            self.end("no_snapshot_asked")

    def ring(self, alarm: str) -> None:
        """`SETTLE` or `GIVE_UP`."""
        if alarm == SETTLE:
            self.settle()
        else:
            self.end("gave_up")

    def settle(self) -> None:
        """Is there anything to save, and nothing being saved?"""
        self._ask([server.PERSISTENCE], Settle())

    def replied(self, purpose: Settle | Save, reply: Reply) -> None:
        """The answers to what this asked."""
        if isinstance(purpose, Settle):
            self._settled(server.persistence(reply))
        else:
            self.end(f"refused: {reply.brief}" if isinstance(reply, Refused) else "saved")

    def _settled(self, facts: Persistence | None) -> None:
        if facts is None or not (facts.saving or facts.changes):
            self.end("nothing_to_save")
        elif facts.saving:
            self._out.alarm(SETTLE, SETTLE_SECONDS)
        else:
            self._ask([(b"SAVE",)], Save())

    def fail(self, error: AgentbusError) -> None:
        """Last words: restarting will not help."""
        self._out.send(CONTROL, Failing(to_failure(error)))
        self._out.do(Exit(exits.FAILING))

    def end(self, why: str) -> None:
        """Whatever happened, the process has ended as it was told to."""
        self._out.note("info", "stopped", why=why)
        self._out.do(Exit(exits.OK))
