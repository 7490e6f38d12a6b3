"""What of the projector's effects is which point, and how a transaction is torn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentbus.mirror.connection import Connection
from agentbus.mirror.resp import Command
from agentbus.mirror.write import RECALL
from agentbus.model.ids import CommitId
from agentbus.projector import points
from agentbus.projector.core import Core
from agentbus.projector.events import Ask
from agentbus.projector.states import State
from agentbus.runtime.faults import Faults, InjectedFault, Point, no_fault
from agentbus.wire.events import Received, Send
from agentbus.wire.links import PROJECTOR_GATEWAY, WRITER_PROJECTOR, Committed, Visible
from tests.support.faults import Points

WRITE: list[Command] = [(b"MULTI",), (b"XADD",), (b"HSET",), (b"EXEC",)]
STEP: list[Command] = [RECALL, (b"XADD",), (b"HSET",)]
COMMITTED = Received(WRITER_PROJECTOR, Committed(CommitId(1), CommitId(2), [], []))


class Wire:
    """A connection that notes what it is given."""

    def __init__(self) -> None:
        self.sent: list[Sequence[Command]] = []
        self.done: list[Any] = []

    def send(self, commands: Sequence[Command], done: Any) -> None:
        self.sent.append(commands)
        self.done.append(done)


@pytest.mark.parametrize(
    ("state", "effect", "point"),
    [
        (State.READY, Send(PROJECTOR_GATEWAY, Visible(CommitId(2), [])), Point.PROJECTED),
        (State.REBUILDING, Ask(1, WRITE), Point.REBUILDING),
        (State.REBUILDING, Ask(1, STEP), Point.REBUILDING),
        (State.CATCHING_UP, Ask(1, [RECALL]), None),
        (State.CATCHING_UP, Ask(1, WRITE), Point.CATCHING_UP),
        (State.STOPPING, Ask(1, [(b"SAVE",)]), Point.SNAPSHOT_ASKED),
        (State.READY, Ask(1, WRITE), None),
        (State.CATCHING_UP, Ask(1, [(b"PING",)]), None),
    ],
)
def test_effects_are_points_where_they_are_about_to_be_carried_out(
    state: State, effect: Any, point: Point | None
) -> None:
    passed: list[Point] = []
    core = SimpleNamespace(state=state, handle=lambda event, now: [effect])
    watched = points.watched(cast("Core", core), passed.append)
    assert list(watched.handle(COMMITTED, cast("Any", None))) == [effect]
    assert passed == [Point.COMMIT_HEARD, *([point] if point else [])]


def test_in_earnest_a_connection_is_the_connection() -> None:
    wire = cast("Connection", Wire())
    assert points.torn(wire, no_fault) is wire


def test_half_of_a_transaction_is_written_before_the_process_ends(tmp_path: Path) -> None:
    armed, wire = Points(str(tmp_path)), Wire()
    torn = points.torn(cast("Connection", wire), Faults(str(tmp_path), "projector"))
    errors: list[Any] = []

    async def write() -> None:
        loop = asyncio.get_running_loop()
        raised = asyncio.Event()

        def note(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            errors.append(context["exception"])
            raised.set()

        loop.set_exception_handler(note)
        armed.arm(Point.BATCH_TORN, action="raise")
        torn.send([(b"PING",)], print)
        torn.send(WRITE, print)
        assert errors == []
        await raised.wait()
        torn.send(WRITE, print)

    asyncio.run(write())
    assert wire.sent == [[(b"PING",)], WRITE[:2], WRITE]
    assert isinstance(errors[0], InjectedFault)


def test_a_snapshot_has_begun_when_redis_says_so(tmp_path: Path) -> None:
    armed, wire = Points(str(tmp_path)), Wire()
    torn = points.torn(cast("Connection", wire), Faults(str(tmp_path), "projector"))
    armed.arm(Point.SNAPSHOT_BEGUN, action="raise")
    torn.send([(b"BGSAVE",)], print)
    assert not armed.has_fired(Point.SNAPSHOT_BEGUN)
    with pytest.raises(InjectedFault):
        wire.done[0]([b"Background saving started"])
