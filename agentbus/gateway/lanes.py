"""Credit and lanes: what bounds the messages inside the daemon, since its links never pause.

An operation takes credit when its turn has come and gives it back when it is refused, turns out to
be a duplicate, or its commit has become visible. Without credit it waits in the lane of its
session, in submission order; the lanes take turns. A full lane refuses. Where operations are
inspected, a lane is held by the one whose turn it is until that has been decided.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from agentbus.config import MIB
from agentbus.errors import RateLimited
from agentbus.model.ids import CommitId

if TYPE_CHECKING:
    from agentbus.gateway.connections import Call
    from agentbus.gateway.pending import Operation

CREDIT_OPERATIONS: Final = 2048
CREDIT_BYTES: Final = 16 * MIB
LANE_OPERATIONS: Final = 64
LANE_BYTES: Final = 8 * MIB
RETRY_MS: Final = 100
"""What a full lane is told: credit comes back within a few commits."""


class Lane:
    """Operations of one session that wait for their turn, and the one that is being inspected."""

    __slots__ = ("bytes", "held_by", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Operation] = deque()
        self.bytes = 0
        self.held_by: Operation | None = None

    def require_room(self, size: int) -> None:
        """Raises RateLimited where the lane is full."""
        if len(self.waiting) >= LANE_OPERATIONS or self.bytes + size > LANE_BYTES:
            raise RateLimited(
                f"{len(self.waiting)} operations ({self.bytes} bytes) of this session wait for the "
                "bus already, more are not taken; try again a little later",
                retry_after_ms=RETRY_MS,
            )

    def add(self, operation: Operation) -> None:
        """Puts it last."""
        self.waiting.append(operation)
        self.bytes += operation.size

    def take(self) -> Operation:
        """Takes the first."""
        operation = self.waiting.popleft()
        self.bytes -= operation.size
        return operation

    def clear(self) -> list[Operation]:
        """Takes all that wait."""
        dropped, self.bytes = list(self.waiting), 0
        self.waiting.clear()
        return dropped


class Credit:
    """Operations and bytes submitted and not yet visible."""

    def __init__(self) -> None:
        self.operations = 0
        self.bytes = 0
        self._visible = CommitId(0)
        self._owed: deque[tuple[CommitId, list[Call]]] = deque()

    def take(self, size: int) -> bool:
        """Whether one more operation may be submitted, which it then is."""
        if self.operations >= CREDIT_OPERATIONS or self.bytes + size > CREDIT_BYTES:
            return False
        self.operations += 1
        self.bytes += size
        return True

    def give(self, size: int) -> None:
        """One has ended without a message that is to become visible."""
        self.operations -= 1
        self.bytes -= size

    def accepted(self, commit: CommitId, calls: list[Call]) -> list[Call]:
        """These become visible with a commit; those of it that already are come back."""
        self._owed.append((commit, calls))
        return self.visible(self._visible)

    def visible(self, commit: CommitId) -> list[Call]:
        """Everything up to a commit is visible: the sends this concerns, whose credit is free."""
        self._visible = max(self._visible, commit)
        freed: list[Call] = []
        while self._owed and self._owed[0][0] <= self._visible:
            freed += self._owed.popleft()[1]
        for call in freed:
            self.give(call.size)
        return freed


class Lanes:
    """All lanes in front of one credit; `submit` gets each operation when its credit is taken.

    With `hold`, that gets them instead, and has to `let_go` of the lane.
    """

    def __init__(
        self,
        submit: Callable[[Operation], None],
        hold: Callable[[Lane, Operation], None] | None = None,
    ) -> None:
        self.credit = Credit()
        self._submit = submit
        self._hold = hold
        self._turns: deque[Lane] = deque()
        """The lanes that are not held and not empty, next one first."""
        self._held: dict[int, Lane] = {}
        """The others that are not empty, or are held, by the `ref` of who holds them."""

    def offer(self, lane: Lane, operation: Operation) -> None:
        """Begins with it, or has it wait; the lane has been asked for room."""
        if not self._turns and lane.held_by is None and self.credit.take(operation.size):
            self._go(lane, operation)
            return
        if not lane.waiting and lane.held_by is None:
            self._turns.append(lane)
        lane.add(operation)

    def drain(self) -> None:
        """Begins with what credit there is for, one of each lane in turn."""
        turns = self._turns
        while turns and self.credit.take(turns[0].waiting[0].size):
            lane = turns.popleft()
            self._go(lane, lane.take())
            if lane.waiting and lane.held_by is None:
                turns.append(lane)

    def let_go(self, lane: Lane, *, submit: bool) -> None:
        """What holds the lane goes to the writer, or nowhere; the next one has its turn."""
        operation, lane.held_by = lane.held_by, None
        if operation is None:
            return
        del self._held[operation.frame.ref]
        if submit:
            self._submit(operation)
        else:
            self.credit.give(operation.size)
        if lane.waiting:
            self._turns.append(lane)
        self.drain()

    def drop(self, lane: Lane) -> list[Operation]:
        """Takes out what waits in one lane, and what holds it."""
        held, lane.held_by = lane.held_by, None
        if held is not None:
            del self._held[held.frame.ref]
            self.credit.give(held.size)
        elif lane.waiting:
            self._turns.remove(lane)
        return [*([held] if held else []), *lane.clear()]

    def drop_all(self) -> list[Operation]:
        """Takes out what waits in all lanes, and what holds them."""
        lanes = [*self._held.values(), *self._turns]
        return [dropped for lane in lanes for dropped in self.drop(lane)]

    def _go(self, lane: Lane, operation: Operation) -> None:
        """Its credit is taken."""
        if self._hold is None:
            self._submit(operation)
        else:
            lane.held_by = operation
            self._held[operation.frame.ref] = lane
            self._hold(lane, operation)
