"""An agent that sends: several messages at a time, each until it is accepted."""

from __future__ import annotations

from typing import Final

from tests.support.simulation.clients import Arguments, Client, Result
from tests.support.simulation.scheduler import Scheduler
from tests.support.simulation.truth import Truth, require
from tests.support.simulation.workload import CHANNELS, FULL, PASSING, code_of

REPEATED: Final = 0.1
"""How often a message that was accepted is sent again."""

REUSED: Final = 0.03
"""How often its id is used for something else."""


class Sender:
    """So many messages at a time, each until it is accepted; some of them again after that."""

    def __init__(self, client: Client, truth: Truth, scheduler: Scheduler, pace: float) -> None:
        self.busy = 0
        """Messages that are not accepted yet."""
        self._client = client
        self._truth = truth
        self._scheduler = scheduler
        self._chance = scheduler.chance(f"sender {client.name}")
        self._pace = pace
        self._width = self._chance.choice((1, 1, 5))
        self._count = 0
        self._stopped = True
        self._alive = 0

    def begin(self) -> None:
        """Goes on until `stop`."""
        self._stopped = False
        while self._alive < self._width:
            self._alive += 1
            self._pause()

    def stop(self) -> None:
        """What was begun is finished."""
        self._stopped = True

    def _pause(self) -> None:
        self._scheduler.after(self._chance.expovariate(1 / self._pace), self._next)

    def _next(self) -> None:
        if self._stopped:
            self._alive -= 1
            return
        self._count += 1
        self.busy += 1
        name = self._client.name
        size = int(10 * 300 ** self._chance.random())
        self._try(
            {
                "channel": self._chance.choice(CHANNELS),
                "message_id": f"{name}-{self._count}",
                "content": f"{self._count} of {name} " + "x" * size,
            }
        )

    def _try(self, message: Arguments) -> None:
        if self._client.call("send", message, lambda result: self._told(message, result)) is None:
            self._again(message)

    def _told(self, message: Arguments, result: Result | None) -> None:
        code = "lost" if result is None else code_of(result, PASSING | {FULL})
        if code == FULL:
            self._done()
            return
        if result is None or code is not None:
            self._again(message)
            return
        again = message["message_id"] in self._truth.accepted
        require(result["duplicate"] or not again, "accepted twice", message["message_id"])
        self._truth.accept(message["message_id"], message["channel"], result)
        if self._chance.random() < REPEATED:
            self._again(message)
        elif self._chance.random() < REUSED:
            self._reuse(message)
        else:
            self._done()

    def _again(self, message: Arguments) -> None:
        self._scheduler.after(self._chance.uniform(0.05, 0.5), self._try, message)

    def _reuse(self, message: Arguments) -> None:
        """The same id for something else is refused; whatever else is said says nothing."""

        def told(result: Result | None) -> None:
            if result is not None:
                known = code_of(result, PASSING | {"operation_id_conflict", FULL})
                require(known is not None, "an id was used twice", message["message_id"], result)
            self._done()

        other = message | {"content": "something else"}
        if self._client.call("send", other, told) is None:
            self._done()

    def _done(self) -> None:
        self.busy -= 1
        self._pause()
