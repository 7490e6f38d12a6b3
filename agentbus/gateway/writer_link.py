"""Asking the writer, also across its restarts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentbus.gateway.alarms import Alarms
from agentbus.gateway.condition import Condition
from agentbus.gateway.connections import Attachment, Call
from agentbus.gateway.outbox import Outbox
from agentbus.gateway.pending import (
    HINDERED_SECONDS,
    PATIENCE_SECONDS,
    Asked,
    Operation,
    Pending,
    Then,
)
from agentbus.wire.links import GATEWAY_WRITER, GatewayHello

AGAIN_SECONDS: Final = 1.0
AGAIN: Final = "operations to ask again"
"""Name of the alarm at which `ask_again` is due."""

IMPATIENT: Final = "operations without a writer"
"""Name of the alarm at which `impatient` is due."""


class WriterLink:
    """The gateway's end of its link to the writer."""

    def __init__(self, out: Outbox, alarms: Alarms, condition: Condition) -> None:
        self._out = out
        self._alarms = alarms
        self._condition = condition
        self._pending = Pending()
        self._again: list[Operation] = []

    @property
    def idle(self) -> bool:
        """Whether nothing is unanswered."""
        return not len(self._pending) and not self._again

    def ask(
        self,
        frame: Asked,
        attachment: Attachment | None = None,
        calls: Sequence[Call] = (),
        *,
        lasting: bool = False,
    ) -> None:
        """Asks until there is an answer."""
        self.submit(Operation(frame, attachment, calls, lasting=lasting))

    def inquire(self, frame: Asked, then: Then) -> None:
        """Asks something whose answer goes to `then`."""
        self.submit(Operation(frame, then=then))

    def submit(self, operation: Operation) -> None:
        """The same for an operation that was made before."""
        frame = operation.frame
        if self._pending.add(frame.ref, operation, self._alarms.now):
            self._out.send(GATEWAY_WRITER, frame)
        if not self._condition.writer:
            self._await()

    def keep(self, operation: Operation) -> None:
        """Has an operation that could not be stored asked again a little later, in order."""
        operation.calls = ()
        self._again.append(operation)
        self._alarms.ensure(AGAIN, AGAIN_SECONDS)

    def ask_again(self) -> None:
        """Asks what was kept."""
        again, self._again = self._again, []
        for operation in again:
            self.submit(operation)

    def answered(self, ref: int) -> Operation | None:
        """The operation of an answer, which is over with it."""
        return self._pending.answered(ref)

    def opened(self) -> None:
        """There is a writer: greets it, then asks again what was not answered."""
        self._out.send(GATEWAY_WRITER, GatewayHello(self._condition.incarnation))
        for frame in self._pending.opened():
            self._out.send(GATEWAY_WRITER, frame)

    def welcomed(self) -> None:
        """It serves."""
        self._pending.welcomed()
        self._alarms.set(IMPATIENT, None)

    def hindered(self) -> None:
        """It is known why it does not."""
        self._await()

    def closed(self) -> None:
        """The writer is gone."""
        self._condition.writer = False
        self._pending.closed(self._alarms.now)
        self._await()

    def impatient(self) -> list[Operation]:
        """Operations that have waited for a writer for too long, which are over."""
        late = self._pending.expired(self._alarms.now, self.patience)
        self._await()
        return late

    @property
    def patience(self) -> float:
        """Seconds for which operations wait for a writer that serves."""
        return HINDERED_SECONDS if self._condition.hindrance else PATIENCE_SECONDS

    def _await(self) -> None:
        self._alarms.set(IMPATIENT, self._pending.due(self.patience))
