"""An agent that receives, and changes its mind at times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.support.simulation.clients import Arguments, Call, Client, Result
from tests.support.simulation.scheduler import Scheduler
from tests.support.simulation.truth import Truth
from tests.support.simulation.workload import code_of

HURRY: Final = 0.005
CANCELLED: Final = 0.2
"""How often a recv is cancelled some time later."""

DEAF: Final = 0.1
"""How often the harness does not read for a while, so that what is taken back was answered."""


class Receiver:
    """Calls of recv, one at a time. While it is `calm` (nothing fails), a recv that finds nothing
    has to be right about it."""

    def __init__(
        self,
        client: Client,
        truth: Truth,
        scheduler: Scheduler,
        pace: float,
        calm: Callable[[], bool],
    ) -> None:
        self._client = client
        self._truth = truth
        self._scheduler = scheduler
        self._chance = scheduler.chance(f"receiver {client.name}")
        self._pace = pace
        self._calm = calm
        self._hurries = False
        self._stopped = True
        self._alive = False

    def begin(self) -> None:
        """Goes on until `stop`."""
        self._stopped = self._hurries = False
        if not self._alive:
            self._pause()

    def hurry(self) -> None:
        """Receives as fast as it can from now on, and cancels nothing."""
        self._hurries = True

    def stop(self) -> None:
        """Receives no more."""
        self._stopped = True

    def _pause(self) -> None:
        pace = HURRY if self._hurries else self._pace
        self._alive = True
        self._scheduler.after(self._chance.expovariate(1 / pace), self._receive)

    def _receive(self) -> None:
        self._alive = not self._stopped
        if self._stopped:
            return
        chance = self._chance
        arguments: Arguments = {
            "max_messages": chance.choice((1, 2, 5, 20)),
            "wait_seconds": chance.choice((0, 0.05, 1)),
        }
        accepted = self._truth.tops() if self._calm() else {}
        call = self._client.call("recv", arguments, lambda result: self._told(result, accepted))
        if call is None:
            self._pause()
        elif not self._hurries and chance.random() < DEAF:
            self._client.block(chance.random() ** 2)
            self._scheduler.after(chance.random() ** 2 / 2, self._cancel, call)
        elif not self._hurries and chance.random() < CANCELLED:
            self._scheduler.after(chance.random() ** 3, self._cancel, call)

    def _told(self, result: Result | None, accepted: dict[str, int]) -> None:
        if result is not None and code_of(result) is None and self._calm():
            self._truth.nothing(self._client.name, result, accepted)
        self._pause()

    def _cancel(self, call: Call) -> None:
        if self._client.cancel(call):
            if self._chance.random() < 0.5:
                self._receive()
            else:
                self._pause()
