"""Operations that the writer was asked for and has not answered, in the order they were submitted.

They outlive the writer: its successor is asked again, in the same order. The gateway cannot know
which of them were committed and need not: receipts make sends exact, the others say the same when
asked twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from agentbus.gateway.connections import Attachment, Call
from agentbus.wire.links import (
    Append,
    ChannelCreate,
    CountAsk,
    DiscoverAsk,
    GapAsk,
    MemoryDelete,
    MemoryEdit,
    Outcome,
    ReceiptAsk,
    Register,
    Release,
    Renew,
    Report,
    StatusAsk,
    Subscribe,
    Unsubscribe,
)

Asked = (
    Append
    | MemoryEdit
    | MemoryDelete
    | ReceiptAsk
    | Register
    | Release
    | Renew
    | ChannelCreate
    | Subscribe
    | Unsubscribe
    | Report
    | GapAsk
    | CountAsk
    | DiscoverAsk
    | StatusAsk
)
"""What is answered, and asked again where it was not."""

Lasting = Append | MemoryEdit | MemoryDelete
"""What leaves a receipt."""

Then = Callable[[Outcome], None]

PATIENCE_SECONDS: Final = 30.0
"""How long an operation waits for a writer that does not serve."""

HINDERED_SECONDS: Final = 5.0
"""The same where it is known what keeps the writer from it, so that whoever asked hears of that
before they have lost patience themselves."""


class Operation(msgspec.Struct, eq=False, gc=False):
    """What is asked, for whom.

    `size` are the bytes of the request where credit is taken for it. `lasting` ones are asked until
    they are carried out, even when nobody waits for that any more. The answer goes to `then` where
    there is one, whatever it is. `caught` is the monotonic time since which it waits for a writer
    that serves.
    """

    frame: Asked
    attachment: Attachment | None = None
    calls: Sequence[Call] = ()
    size: int = 0
    lasting: bool = False
    then: Then | None = None
    caught: float | None = None


class Pending:
    """The operations by `ref`, oldest first."""

    def __init__(self) -> None:
        self._operations: dict[int, Operation] = {}
        self._up = False
        self._serves = False

    def __len__(self) -> int:
        return len(self._operations)

    def add(self, ref: int, operation: Operation, now: float) -> bool:
        """Keeps it; True tells to send it now, else it is sent when a writer is there."""
        self._operations[ref] = operation
        if not self._serves:
            operation.caught = now
        return self._up

    def answered(self, ref: int) -> Operation | None:
        """Takes out the operation of an answer."""
        return self._operations.pop(ref, None)

    def opened(self) -> list[Asked]:
        """A writer is there, which may not serve yet: what to ask it."""
        self._up = True
        return [operation.frame for operation in self._operations.values()]

    def welcomed(self) -> None:
        """It serves."""
        self._serves = True

    def closed(self, now: float) -> None:
        """The writer is gone."""
        self._up = self._serves = False
        for operation in self._operations.values():
            if operation.caught is None:
                operation.caught = now

    def due(self, patience: float) -> float | None:
        """When the next operation loses patience."""
        if self._serves:
            return None
        waits = (each.caught for each in self._operations.values() if not each.lasting)
        first = next(waits, None)  # whoever was asked first has waited longest
        return None if first is None else first + patience

    def expired(self, now: float, patience: float) -> list[Operation]:
        """Takes out what has waited for too long."""
        if self._serves:
            return []
        late = [ref for ref, each in self._operations.items() if _late(each, now - patience)]
        return [self._operations.pop(ref) for ref in late]


def _late(operation: Operation, since: float) -> bool:
    return not operation.lasting and operation.caught is not None and operation.caught <= since


def operation_id(frame: Lasting) -> str:
    """What the receipt of an operation is found by."""
    return frame.message_id if isinstance(frame, Append) else frame.operation_id
