"""What agents do: send until it is accepted, receive, cancel, go on."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from tests.support.simulation.clients import Arguments, Call, Client, Result
from tests.support.simulation.scheduler import Scheduler
from tests.support.simulation.truth import Truth, require

CHANNELS: Final = ("general", "side/1")

HURRY: Final = 0.005
REPEATED: Final = 0.1
"""How often a message that was accepted is sent again."""

REUSED: Final = 0.03
"""How often its id is used for something else."""

PASSING: Final = frozenset(
    {
        "rate_limited",
        "storage_error",
        "recovering",
        "unavailable",
        "stale_attachment",
        "session_already_connected",
    }
)
"""Errors that faults around us explain, and that another try mends."""


def code_of(result: Result, allowed: frozenset[str] = PASSING) -> str | None:
    """The error's code; None where it worked. Raises Violation at one that nothing explains."""
    if "error" not in result:
        return None
    code = str(result["error"]["code"])
    require(code in allowed, "refused", result)
    return code


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
        if result is None or code_of(result) is not None:
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
                known = code_of(result, PASSING | {"operation_id_conflict"})
                require(known is not None, "an id was used twice", message["message_id"], result)
            self._done()

        other = message | {"content": "something else"}
        if self._client.call("send", other, told) is None:
            self._done()

    def _done(self) -> None:
        self.busy -= 1
        self._pause()


class Receiver:
    """Calls of recv, one at a time, some of them cancelled."""

    def __init__(self, client: Client, scheduler: Scheduler, pace: float) -> None:
        self._client = client
        self._scheduler = scheduler
        self._chance = scheduler.chance(f"receiver {client.name}")
        self._pace = pace
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
        arguments = {
            "max_messages": chance.choice((1, 2, 5, 20)),
            "wait_seconds": chance.choice((0, 0.05, 1)),
        }
        call = self._client.call("recv", arguments, self._told)
        if call is None:
            self._pause()
        elif not self._hurries and chance.random() < 0.1:
            self._scheduler.after(chance.random() ** 3, self._cancel, call)

    def _told(self, result: Result | None) -> None:
        if result is not None:
            code_of(result)
        self._pause()

    def _cancel(self, call: Call) -> None:
        if self._client.cancel(call):
            if self._chance.random() < 0.5:
                self._receive()
            else:
                self._pause()


def prepare(client: Client, scheduler: Scheduler, done: Callable[[str], None]) -> None:
    """Creates the channels and subscribes to them, however many tries it takes."""
    steps = [
        ("create_channel", {"name": CHANNELS[1]}),
        *(("subscribe", {"channel": channel}) for channel in CHANNELS),
    ]
    chance: Random = scheduler.chance(f"prepare {client.name}")

    def go() -> None:
        if not steps:
            done(client.name)
        elif client.call(*steps[0], told) is None:
            scheduler.after(0.1, go)

    def told(result: Result | None) -> None:
        if result is not None and code_of(result) is None:
            del steps[0]
            go()
        else:
            scheduler.after(chance.uniform(0.05, 0.5), go)

    go()
