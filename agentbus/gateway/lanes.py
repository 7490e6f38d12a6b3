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
from agentbus.model.message import Payload

if TYPE_CHECKING:
    from agentbus.gateway.connections import Attachment, Call

CREDIT_OPERATIONS: Final = 2048
CREDIT_BYTES: Final = 16 * MIB
LANE_OPERATIONS: Final = 64
LANE_BYTES: Final = 8 * MIB
RETRY_MS: Final = 100
"""What a full lane is told: credit comes back within a few commits."""


class Submission:
    """A send on its way to the writer."""

    __slots__ = ("attachment", "call", "channel", "fingerprint", "message_id", "payload")

    def __init__(
        self,
        call: Call,
        attachment: Attachment,
        channel: str,
        message_id: str,
        fingerprint: bytes,
        payload: Payload,
    ) -> None:
        self.call = call
        self.attachment = attachment
        self.channel = channel
        self.message_id = message_id
        self.fingerprint = fingerprint
        self.payload = payload


class Lane:
    """Submissions of one session that wait for credit."""

    __slots__ = ("bytes", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Submission] = deque()
        self.bytes = 0

    def require_room(self, size: int) -> None:
        """Raises RateLimited where the lane is full."""
        if len(self.waiting) >= LANE_OPERATIONS or self.bytes + size > LANE_BYTES:
            raise RateLimited(
                f"{len(self.waiting)} operations ({self.bytes} bytes) of this session wait for the "
                "bus already, more are not taken; try again a little later",
                retry_after_ms=RETRY_MS,
            )

    def add(self, submission: Submission) -> None:
        """Puts it last."""
        self.waiting.append(submission)
        self.bytes += submission.call.size

    def take(self) -> Submission:
        """Takes the first."""
        submission = self.waiting.popleft()
        self.bytes -= submission.call.size
        return submission

    def clear(self) -> list[Submission]:
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
    """All lanes in front of one credit."""

    def __init__(self, submit: Callable[[Submission], None]) -> None:
        self.credit = Credit()
        self._submit = submit
        self._turns: deque[Attachment] = deque()
        """Whose lanes are not empty, next one first."""

    def offer(self, submission: Submission) -> None:
        """Submits it, or has it wait; its lane has been asked for room."""
        if not self._turns and self.credit.admits(submission.call.size):
            self._go(submission)
            return
        lane = submission.attachment.lane
        if not lane.waiting:
            self._turns.append(submission.attachment)
        lane.add(submission)

    def drain(self) -> None:
        """Submits what credit there is for, one of each lane in turn."""
        turns = self._turns
        while turns and self.credit.admits(turns[0].lane.waiting[0].call.size):
            attachment = turns.popleft()
            self._go(attachment.lane.take())
            if attachment.lane.waiting:
                turns.append(attachment)

    def drop(self, attachment: Attachment) -> list[Submission]:
        """Takes out what waits in one lane."""
        if attachment.lane.waiting:
            self._turns.remove(attachment)
        return attachment.lane.clear()

    def drop_all(self) -> list[Submission]:
        """Takes out what waits in all lanes."""
        return [dropped for each in list(self._turns) for dropped in self.drop(each)]

    def _go(self, submission: Submission) -> None:
        self.credit.take(submission.call.size)
        self._submit(submission)
