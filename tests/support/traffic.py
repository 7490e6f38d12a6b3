"""Senders that retry until they know, and a reader that stays: the traffic that crashes happen in.

Each has a thread and a real adapter. A sender makes the next message only when the last one is
accepted; the same id is sent again after every error that says so, and after its adapter died.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.support.daemon import Daemon
from tests.support.stdio import Adapter, ToolError

CHANNELS = ("general", "crash/other")
BOUND = 60.0
"""Seconds within which a crash must be over: something is accepted again."""


class Member:
    """A session that outlives its adapters, which have the bus' environment or one of their own."""

    def __init__(
        self, bus: Daemon, session: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self._environment = environment or bus.environment
        self._arguments = ("--application", "tests", "--session", session, "--agent", session)
        self._adapter: Adapter | None = None
        self.adapters = 0

    def adapter(self) -> Adapter:
        """The present adapter; another one where the last has ended."""
        if self._adapter is None:
            self._adapter = Adapter(self._environment, *self._arguments)
            self.adapters += 1
        return self._adapter

    @property
    def pid(self) -> int | None:
        """Of the present adapter."""
        return None if self._adapter is None else self._adapter.pid

    def kill(self) -> None:
        """`kill -9` of the present adapter."""
        if self._adapter is not None:
            self._adapter.kill()

    def end(self) -> None:
        """Closes the present adapter."""
        if self._adapter is not None:
            self._adapter.end()
            self._adapter = None

    def insist(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result, however many adapters and tries it takes. Raises ToolError at a refusal."""
        while True:
            try:
                return self.adapter().call(tool, **arguments)
            except EOFError:
                self.end()
            except ToolError as error:
                if not error.retryable:
                    raise


class Sender(Member):
    """`accepted` has (channel, seq) of every message id, in the order of sending."""

    def __init__(self, bus: Daemon, number: int) -> None:
        super().__init__(bus, f"sender-{number}")
        self.number = number
        self.accepted: dict[str, tuple[str, int]] = {}

    def send_next(self) -> None:
        """One message, until it is accepted."""
        count = len(self.accepted)
        channel = CHANNELS[count % len(CHANNELS)]
        message_id = f"{self.number}-{count}"
        sent = self.insist("send", channel=channel, content=message_id, message_id=message_id)
        assert sent["message_id"] == message_id
        self.accepted[message_id] = (channel, sent["seq"])


class Reader(Member):
    """`received` has everything that came, by adapter: what each of them was shown."""

    def __init__(self, bus: Daemon, environment: Mapping[str, str] | None = None) -> None:
        super().__init__(bus, "reader", environment)
        self.received: list[tuple[int, dict[str, Any]]] = []

    def subscribe(self) -> None:
        """To all channels of the traffic, from here on."""
        for channel in CHANNELS:
            self.insist("create_channel", name=channel)
            self.insist("subscribe", channel=channel)

    def receive(self) -> None:
        """One recv."""
        result = self.insist("recv", wait_seconds=0.2, max_messages=50)
        assert not result["gaps"]
        assert not result["expired"]
        self.received += [(self.adapters, message) for message in result["messages"]]


class Traffic:
    """Four senders and a reader at work; `progress` tells how far they are."""

    def __init__(self, bus: Daemon, senders: int = 4) -> None:
        self.reader = Reader(bus)
        self.senders = [Sender(bus, number) for number in range(senders)]
        self._ending = threading.Event()
        self._sent = threading.Event()
        self._moved = threading.Condition()
        self._failures: list[BaseException] = []

    def accepted(self) -> int:
        """Messages accepted so far."""
        return sum(len(sender.accepted) for sender in self.senders)

    def go_on(self, messages: int) -> None:
        """Waits until each sender had so many more accepted, and the reader received that many."""
        goals = [len(sender.accepted) + messages for sender in self.senders]
        received = len(self.reader.received) + messages

        def reached() -> bool:
            return len(self.reader.received) >= received and all(
                len(sender.accepted) >= goal
                for sender, goal in zip(self.senders, goals, strict=True)
            )

        self._wait(reached)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Everybody works within it; at its end the senders stop and the reader gets the rest."""
        self.reader.subscribe()
        senders = [self._start(self._send, sender) for sender in self.senders]
        reader = self._start(self._receive)
        try:
            yield
            self._ending.set()
            self._join(senders)
            self._sent.set()
            self._join([reader])
            assert not self._failures, self._failures
        finally:
            self._ending.set()
            self._sent.set()
            self._join([*senders, reader])
            for member in (self.reader, *self.senders):
                member.end()

    def _send(self, sender: Sender) -> None:
        while not self._ending.is_set():
            sender.send_next()
            self._tell()

    def _receive(self) -> None:
        deadline = float("inf")
        while not self._sent.is_set() or not self._complete():
            if self._sent.is_set():
                deadline = min(deadline, time.monotonic() + BOUND)
                assert time.monotonic() < deadline, "what was accepted does not come"
            self.reader.receive()
            self._tell()

    def _complete(self) -> bool:
        seen = {message["message_id"] for _, message in self.reader.received}
        return all(seen.issuperset(sender.accepted) for sender in self.senders)

    def _start(self, work: Any, *arguments: Any) -> threading.Thread:
        def run() -> None:
            try:
                work(*arguments)
            except BaseException as error:  # noqa: BLE001 - the test's own thread tells it
                self._failures.append(error)
                self._tell()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    @staticmethod
    def _join(threads: list[threading.Thread]) -> None:
        for thread in threads:
            thread.join(2 * BOUND)
            assert not thread.is_alive(), "a member of the traffic hangs"

    def _tell(self) -> None:
        with self._moved:
            self._moved.notify_all()

    def _wait(self, condition: Any) -> None:
        with self._moved:
            came = self._moved.wait_for(lambda: self._failures or condition(), BOUND)
        assert not self._failures, self._failures
        assert came, f"nothing goes on: {[len(sender.accepted) for sender in self.senders]}"
