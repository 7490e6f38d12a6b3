"""One connection to the server: what was asked on it and why."""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec

from agentbus.mirror.resp import Command
from agentbus.mirror.write import Mark
from agentbus.model.channel import ChannelInfo
from agentbus.model.ids import CommitId
from agentbus.projector.events import Ask
from agentbus.projector.recover import Step
from agentbus.wire.links import Evicted

ANSWER_SECONDS: Final = 10.0
LONG_ANSWER_SECONDS: Final = 60.0
"""For what takes longer the more there is: clearing, saving."""


class Inspect(msgspec.Struct, frozen=True):
    """Is the server fit?"""


class Recall(msgspec.Struct, frozen=True):
    """What does it hold?"""


class Survey(msgspec.Struct, frozen=True):
    """What do these streams hold? It should be what the database had at this commit."""

    channels: list[ChannelInfo]
    commit_id: CommitId


class Clear(msgspec.Struct, frozen=True):
    """Empty it."""


class Write(msgspec.Struct, frozen=True):
    """Take a step; Redis must have been at `before`."""

    before: Mark
    step: Step


class Check(msgspec.Struct, frozen=True):
    """Does it still hold this, and is a snapshot due?"""

    mark: Mark


class Snapshot(msgspec.Struct, frozen=True):
    """Save in the background."""


class Settle(msgspec.Struct, frozen=True):
    """Before the end: is there anything to save, and nothing being saved?"""


class Save(msgspec.Struct, frozen=True):
    """Save, and answer when that is done."""


class Measure(msgspec.Struct, frozen=True):
    """How large is it? For the gateway's status question `ref`, asked at this commit."""

    ref: int
    commit_id: CommitId


class Weigh(msgspec.Struct, frozen=True):
    """How large is it? For the writer, which has asked so often, with everything up to this."""

    asked: tuple[Evicted, ...]
    commit_id: CommitId


class Prepare(msgspec.Struct, frozen=True):
    """Make the server's own index, if it is not there; are all documents in it?"""


Upkeep = Inspect | Check | Snapshot | Settle | Save | Measure | Weigh | Prepare
"""What is not of recovery or writing."""

Purpose = Recall | Survey | Clear | Write | Upkeep

_LONG: Final = (Clear, Save)


class Pending(msgspec.Struct, frozen=True):
    """A request that is unanswered; `round` is the attempt at recovery it belongs to."""

    purpose: Purpose
    round: int
    deadline: float


class Conversation:
    """Requests and their purposes, in order."""

    def __init__(self, connection: int) -> None:
        self.connection = connection
        self._pending: deque[Pending] = deque()

    def ask(self, commands: list[Command], purpose: Purpose, round_number: int, now: float) -> Ask:
        """The effect that asks."""
        seconds = LONG_ANSWER_SECONDS if isinstance(purpose, _LONG) else ANSWER_SECONDS
        self._pending.append(Pending(purpose, round_number, now + seconds))
        return Ask(self.connection, commands)

    def answered(self) -> Pending:
        """The request that the next replies belong to."""
        return self._pending.popleft()

    def is_overdue(self, now: float) -> bool:
        """Whether the server should have answered the oldest request by now."""
        return bool(self._pending) and self._pending[0].deadline < now

    def measures(self) -> list[Measure]:
        """The status questions that are unanswered."""
        purposes = (pending.purpose for pending in self._pending)
        return [purpose for purpose in purposes if isinstance(purpose, Measure)]
