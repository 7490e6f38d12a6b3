"""Credit and lanes: what bounds the messages inside the daemon, since its links never pause.

An operation takes credit when it is submitted to the writer and gives it back when it is refused,
turns out to be a duplicate, or its commit has become visible. Without credit it waits in the lane
of its session, in submission order; the lanes take turns. A full lane refuses.
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
    """Sends of one session that wait for credit."""

    __slots__ = ("bytes", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Operation] = deque()
        self.bytes = 0

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
        """Takes all."""
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

    def admits(self, size: int) -> bool:
        """Whether one more operation may be submitted."""
        return self.operations < CREDIT_OPERATIONS and self.bytes + size <= CREDIT_BYTES

    def take(self, size: int) -> None:
        """One is submitted."""
        self.operations += 1
        self.bytes += size

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
    """All lanes in front of one credit; `submit` gets each operation when its credit is taken."""

    def __init__(self, submit: Callable[[Operation], None]) -> None:
        self.credit = Credit()
        self._submit = submit
        self._turns: deque[Lane] = deque()
        """The lanes that are not empty, next one first."""

    def offer(self, lane: Lane, operation: Operation) -> None:
        """Submits it, or has it wait; the lane has been asked for room."""
        if not self._turns and self.credit.admits(operation.size):
            self._go(operation)
            return
        if not lane.waiting:
            self._turns.append(lane)
        lane.add(operation)

    def drain(self) -> None:
        """Submits what credit there is for, one of each lane in turn."""
        turns = self._turns
        while turns and self.credit.admits(turns[0].waiting[0].size):
            lane = turns.popleft()
            self._go(lane.take())
            if lane.waiting:
                turns.append(lane)

    def drop(self, lane: Lane) -> list[Operation]:
        """Takes out what waits in one lane."""
        if lane.waiting:
            self._turns.remove(lane)
        return lane.clear()

    def drop_all(self) -> list[Operation]:
        """Takes out what waits in all lanes."""
        return [dropped for lane in list(self._turns) for dropped in self.drop(lane)]

    def _go(self, operation: Operation) -> None:
        self.credit.take(operation.size)
        self._submit(operation)
