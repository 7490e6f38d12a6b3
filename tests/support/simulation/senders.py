"""An agent that sends: several messages at a time, each until it is accepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.support.simulation.clients import Arguments, Client, Result
from tests.support.simulation.hooks import FORBIDDEN
from tests.support.simulation.records import require
from tests.support.simulation.scheduler import Scheduler
from tests.support.simulation.truth import Truth
from tests.support.simulation.workload import CHANNELS, DENIED, FULL, MISSING, USED, code_of, word

REPEATED: Final = 0.1
"""How often a message that was accepted is sent again."""

DENIED_SHARE: Final = 0.1
"""How often the inspection is to deny a message."""

WEIGHTS: Final = (3, 3, 2)
"""How often each channel is sent to."""

LONG: Final = 600_000
"""Milliseconds: longer than any run."""

REUSED: Final = 0.03
"""How often its id is used for something else."""


class Sender:
    """So many messages at a time, each until it is accepted; some of them again after that.

    `accepted` is told of each, at once.
    """

    def __init__(
        self,
        client: Client,
        truth: Truth,
        scheduler: Scheduler,
        pace: float,
        hooked: bool,
        accepted: Callable[[str], None],
    ) -> None:
        self.busy = 0
        """Messages that are not accepted yet."""
        self._client = client
        self._truth = truth
        self._scheduler = scheduler
        self._chance = scheduler.chance(f"sender {client.name}")
        self._pace = pace
        self._hooked = hooked
        self._accepted = accepted
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
        denied = self._hooked and self._chance.random() < DENIED_SHARE
        text = FORBIDDEN if denied else "x" * size
        (channel,) = self._chance.choices(CHANNELS, WEIGHTS)
        self._try(
            {
                "channel": channel,
                "message_id": f"{name}-{self._count}",
                "content": f"{word(name, 'm', self._count)} of {name} {text}",
            }
        )

    def _try(self, message: Arguments) -> None:
        if self._client.call("send", message, lambda result: self._told(message, result)) is None:
            self._again(message)

    def _told(self, message: Arguments, result: Result | None) -> None:
        identity = message["message_id"]
        forgotten = self._truth.stored.is_forgotten(identity)
        code = "lost" if result is None else code_of(result, FULL, MISSING, DENIED, USED)
        if code == DENIED:
            require(FORBIDDEN in message["content"], "denied without reason", message)
        if code == USED:
            require(forgotten, "an id was used before", message, result)
        if code in (FULL, DENIED, USED):
            self._done()
            return
        if result is None or code is not None:
            self._again(message)
            return
        again = self._truth.is_accepted(identity) and not forgotten
        require(result["duplicate"] or not again, "accepted twice", message["message_id"])
        self._truth.accept(identity, message["channel"], result)
        self._accepted(identity)
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
                known = code_of(result, USED, FULL, MISSING)
                require(known is not None, "an id was used twice", message["message_id"], result)
            self._done()

        kept = self._truth.stored.terms.receipts >= LONG
        if not kept:  # it may be free again
            self._done()
            return
        other = message | {"content": "something else"}
        if self._client.call("send", other, told) is None:
            self._done()

    def _done(self) -> None:
        self.busy -= 1
        self._pause()
