"""Agents that receive, and agents that look back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.support.simulation.clients import Arguments, Call, Client, Result
from tests.support.simulation.scheduler import Scheduler
from tests.support.simulation.truth import Truth
from tests.support.simulation.workload import CHANNELS, code_of

HURRY: Final = 0.005
CANCELLED: Final = 0.2
"""How often a recv is cancelled some time later."""


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


class Historian:
    """Calls of history, now and then, at any place."""

    def __init__(self, client: Client, truth: Truth, scheduler: Scheduler) -> None:
        self._client = client
        self._truth = truth
        self._scheduler = scheduler
        self._chance = scheduler.chance(f"historian {client.name}")
        self._stopped = True
        self._alive = False

    def begin(self) -> None:
        """Goes on until `stop`."""
        self._stopped = False
        if not self._alive:
            self._pause()

    def stop(self) -> None:
        """Looks no more."""
        self._stopped = True

    def _pause(self) -> None:
        self._alive = True
        self._scheduler.after(self._chance.expovariate(1), self._look)

    def _look(self) -> None:
        self._alive = not self._stopped
        if self._stopped:
            return
        channel = self._chance.choice(CHANNELS)
        arguments: dict[str, Any] = {"channel": channel, "limit": self._chance.choice((1, 3, 100))}
        top = len(self._truth.streams.get(channel, []))
        for bound in ("before", "after"):
            if self._chance.random() < 0.5:
                arguments[bound] = self._chance.randint(1, top + 1)
        began = self._scheduler.now

        def told(result: Result | None) -> None:
            if result is not None and code_of(result) is None:
                self._truth.look_back(arguments, result, began)
            self._pause()

        if not self._client.call("history", arguments, told):
            self._pause()
