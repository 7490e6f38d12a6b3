"""The points of this process at which tests make it die; nothing of it is there in earnest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from agentbus.mirror.connection import Connection, Done
from agentbus.mirror.resp import Command
from agentbus.mirror.write import RECALL
from agentbus.projector.core import Core
from agentbus.projector.events import Ask
from agentbus.projector.states import State
from agentbus.runtime import faults
from agentbus.runtime.faults import Fault, Faults, Point
from agentbus.wire.events import Received, Send
from agentbus.wire.links import Committed, Visible

_STEPS = {State.REBUILDING: Point.REBUILDING, State.CATCHING_UP: Point.CATCHING_UP}


def watched(core: Core, fault: Fault) -> Core:
    """The core with its points."""

    def before(effect: Any) -> Point | None:
        match effect:
            case Send(message=Visible()):
                return Point.PROJECTED
            case Ask(commands=[(b"SAVE",)]):
                return Point.SNAPSHOT_ASKED
            case Ask(commands=commands) if _is_batch(commands):
                return _STEPS.get(core.state)
            case _:
                return None

    return faults.watched(core, fault, event=_heard, before=before)


def _is_batch(commands: Sequence[Command]) -> bool:
    """Whether it changes something: a transaction, or a step of a rebuild."""
    return commands[0] == (b"MULTI",) or (commands[0] == RECALL and commands[-1][0] == b"HSET")


def _heard(event: Any) -> Point | None:
    match event:
        case Received(message=Committed()):
            return Point.COMMIT_HEARD
        case _:
            return None


class TornConnection:
    """Stands for a connection on which a transaction may stop halfway."""

    def __init__(self, connection: Connection, fault: Faults) -> None:
        self._connection = connection
        self._fault = fault

    def close(self) -> None:
        """Ends it quietly."""
        self._connection.close()

    def send(self, commands: Sequence[Command], done: Done) -> None:
        """As that of a connection, if nothing is to happen."""
        if commands[0] == (b"BGSAVE",):
            self._connection.send(commands, self._begun(done))
            return
        act = self._fault.claim(Point.BATCH_TORN) if _is_batch(commands) else None
        if act is None:
            self._connection.send(commands, done)
            return
        half = len(commands) // 2
        self._connection.send(commands[:half], lambda _: None)
        _soon(act)

    def _begun(self, done: Done) -> Done:
        def begun(replies: list[Any]) -> None:
            self._fault(Point.SNAPSHOT_BEGUN)
            done(replies)

        return begun


def _soon(act: Callable[[], None]) -> None:
    """When the loop has written what it was given, which it does at the end of a turn."""
    loop = asyncio.get_running_loop()
    loop.call_soon(loop.call_soon, loop.call_soon, act)


def torn(connection: Connection, fault: Fault) -> Connection | TornConnection:
    """The connection with its points; in earnest the connection itself."""
    return TornConnection(connection, fault) if isinstance(fault, Faults) else connection
