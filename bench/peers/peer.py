"""What a bus must be able to do to be compared, and how its steps are driven.

A step (send, read, search) is a generator: it yields calls of tools and is sent their results, so
that the same step runs alone or beside others in one loop, however many calls a bus needs for it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias, TypeVar

from bench.peers.rpc import Client, Stdio

Call: TypeAlias = tuple[str, Mapping[str, Any]]
T = TypeVar("T")
Step: TypeAlias = Generator[Call, dict[str, Any], T]


class Seat:
    """One agent at its adapter."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def send(self, text: str) -> Step[None]:
        """Sends to the receiver. Raises Refused where it was not accepted."""
        raise NotImplementedError

    def read(self, count: int) -> Step[int]:
        """Reads until `count` messages have come, or no more come; how many came."""
        raise NotImplementedError

    def clear(self) -> Step[None]:
        """Takes what was read off the list, where reading does not."""
        yield from ()

    def search(self, word: str) -> Step[int]:
        """The first 20 messages that have a word; how many came."""
        raise NotImplementedError


class Peer:
    """One bus in a temporary place of its own. `close` ends and removes everything."""

    name: ClassVar[str]
    promise: ClassVar[str]
    """What it means that a send was accepted."""
    searches: ClassVar[bool] = True
    holds: ClassVar[int] = 10_000_000
    """Unread messages that a receiver may have before sends are refused."""
    slow: ClassVar[bool] = False
    """Whether a send takes so long that the rows for a search have to come another way."""

    def __init__(self, base: str, programs: str) -> None:
        self.directory = tempfile.mkdtemp(prefix="ab-", dir=base)
        self.programs = programs
        self._clients: list[Client] = []

    @classmethod
    def missing(cls, programs: str) -> str:
        """The path that would have to be there; empty where the bus is installed."""
        path = os.path.join(programs, cls.program())
        return "" if os.path.exists(path) else path

    @classmethod
    def program(cls) -> str:
        """The executable, below the directory of all programs."""
        raise NotImplementedError

    def command(self) -> Sequence[str]:
        """Starts an adapter."""
        return [os.path.join(self.programs, self.program())]

    def environment(self) -> dict[str, str]:
        """Nothing of the user's own place, and nothing of it in reach."""
        places = ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
        places += ("XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
        own = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "NO_PROXY": "127.0.0.1"}
        return own | dict.fromkeys(places, self.directory)

    def open(self, name: str = "bench") -> Client:
        """A further adapter, its handshake done."""
        client = self.track(Stdio(self.command(), self.environment(), self.directory))
        client.greet(name)
        client.ready()
        return client

    def first(self, client: Client) -> None:
        """The cheapest call of a tool that shows that the bus is there."""
        raise NotImplementedError

    def receiver(self, client: Client) -> Seat:
        """The agent that everybody sends to; called once, before any `sender`."""
        raise NotImplementedError

    def sender(self, client: Client, number: int) -> Seat:
        """An agent that sends to the receiver."""
        raise NotImplementedError

    def fill(self, seat: Seat, texts: Sequence[str]) -> None:
        """Makes searchable messages, as `seat` would send them."""
        for text in texts:
            drive(seat.client, seat.send(text))

    settle_seconds: ClassVar[float] = 0.5
    """Between what was sent and reading or searching it."""

    def track(self, client: Client) -> Client:
        """Has a client closed with the rest."""
        self._clients.append(client)
        return client

    def drop(self, client: Client) -> None:
        """Ends one adapter before the rest."""
        self._clients.remove(client)
        client.close()

    def close(self) -> None:
        """Ends everything that was started and removes what it left."""
        for client in self._clients:
            client.close()
        shutil.rmtree(self.directory, ignore_errors=True)


def drive(client: Client, step: Step[T]) -> T:
    """Runs a step alone; what it returns."""
    try:
        call = next(step)
        while True:
            call = step.send(client.call(*call))
    except StopIteration as end:
        value: T = end.value
        return value
