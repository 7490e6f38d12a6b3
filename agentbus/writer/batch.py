"""Which operations share a transaction.

Operations are committed in the order in which they came, as many at once as are there, up to
`MAX_OPERATIONS` or `MAX_BYTES` of envelopes and answers: a commit has to fit one frame and one
`MULTI`. A gateway's greeting stands alone.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import Final

from agentbus.wire.links import GatewayHello, GatewayToWriter

MAX_OPERATIONS: Final = 256
MAX_BYTES: Final = 4 * 1024 * 1024


class Queue:
    """Operations that are not committed yet.

    The first of them may be orphans: of a gateway that is gone, so that nobody waits for answers.
    A batch is of orphans or of others, since the next gateway greets first.
    """

    def __init__(self) -> None:
        self._operations: deque[GatewayToWriter] = deque()
        self._orphans = 0
        self.put = self._operations.extend

    def __len__(self) -> int:
        return len(self._operations)

    def orphan(self) -> None:
        """The gateway of all that is queued is gone."""
        self._orphans = len(self._operations)

    def cut(self, most: int = MAX_OPERATIONS) -> list[GatewayToWriter]:
        """The next batch by number; it stays queued until `drop`."""
        head = list(itertools.islice(self._operations, most))
        for place, operation in enumerate(head):
            if type(operation) is GatewayHello:
                return head[: max(1, place)]
        return head

    def drop(self, count: int) -> bool:
        """So many of the first are done; whether somebody waits for the answers."""
        answered = not self._orphans
        for _ in range(count):
            self._operations.popleft()
        self._orphans = max(0, self._orphans - count)
        return answered
