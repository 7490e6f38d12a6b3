"""What is on its way to Redis.

Writes are pipelined, `IN_FLIGHT` transactions deep, and each names the mark that the one before it
leaves behind. So a transaction that failed, or a server that somebody changed, is seen in the reply
to the next write or check; then everything in flight is disowned: its round is over.

A successor of this process that was killed before such a reply sees by counting that entries are
missing, but not that a memory's content is an old one. So what changes contents travels alone:
behind it nothing moves the mark before it is known to be in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from agentbus.mirror import write
from agentbus.mirror.resp import Command
from agentbus.mirror.write import Mark
from agentbus.projector.conversation import Pending, Purpose, Write
from agentbus.projector.recover import Step

IN_FLIGHT: Final = 2

Ask = Callable[[list[Command], Purpose, int], None]
Next = Callable[[Mark], Step | None]
Documents = Callable[[Step], Sequence[Command]]


class Writes:
    """`mark` is what Redis holds when all in flight is done; None: nobody knows.

    `documents` tells what else a step writes, where the server has an index of its own.
    """

    def __init__(self, ask: Ask, documents: Documents) -> None:
        self._ask = ask
        self._documents = documents
        self._round = 0
        self._steps: Iterator[Step] | None = None
        self._held: Step | None = None  # waits until nothing is in flight
        self._alone = False  # what is in flight changes contents
        self.in_flight = 0
        self.mark: Mark | None = None

    def void(self) -> None:
        """Disowns what is in flight: nothing is known of what Redis holds."""
        self._round += 1
        self.in_flight = 0
        self.mark = None
        self._alone = False
        self.take(None)

    def take(self, steps: Iterator[Step] | None) -> None:
        """Steps that go on from the mark, instead of those so far; None: live ones again."""
        self._steps = steps
        self._held = None

    def start(self, mark: Mark, steps: Iterator[Step]) -> None:
        """The same from this mark."""
        self.mark = mark
        self.take(steps)

    def ask(self, commands: list[Command], purpose: Purpose) -> None:
        """Asks something in the order of the writes."""
        self.in_flight += 1
        self._ask(commands, purpose, self._round)

    def is_answered(self, pending: Pending) -> bool:
        """Redis has answered; False where that does not concern us any more."""
        if pending.round != self._round:
            return False
        self.in_flight -= 1
        if isinstance(pending.purpose, Write):
            self._alone = False
        return True

    def go_on(self, live: Next | None) -> None:
        """Writes as much as may be in flight: of the steps that were taken, else of live ones."""
        while self.mark is not None and self.in_flight < IN_FLIGHT and not self._alone:
            step = self._next(self.mark, live)
            if step is None:
                return
            alone = not step.changes.only_adds
            if alone and self.in_flight:
                self._held = step
                return
            commands = write.batch(self.mark, step.after, step.changes, self._documents(step))
            self.ask(commands, Write(self.mark, step))
            self.mark, self._alone = step.after, alone

    def _next(self, mark: Mark, live: Next | None) -> Step | None:
        if self._held is not None:
            held, self._held = self._held, None
            return held
        if self._steps is not None:
            return next(self._steps, None)
        return None if live is None else live(mark)
