"""A person who takes part from a terminal: an agent under the person's name, a session for each
terminal. Connections come back by themselves; what was asked meanwhile is asked again.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import Final, TypeVar

from agentbus.client.client import Client
from agentbus.client.start import start
from agentbus.config import Configuration
from agentbus.errors import (
    AgentbusError,
    NotRunning,
    SessionAlreadyConnected,
    StaleAttachment,
    Unavailable,
)
from agentbus.runtime.clock import SystemClock
from agentbus.runtime.paths import locate
from agentbus.wire.rpc import RegisterResult

APPLICATION: Final = "terminal"
MOST_AT_ONCE: Final = 100
"""Commands of one kind that one terminal may run beside each other."""

RETRY_SECONDS: Final = 30.0
PAUSE_SECONDS: Final = 0.2

T = TypeVar("T")


class Person:
    """`name` is that of the agent; `place` tells one terminal, and one use of it, from another, so
    that coming back makes no further session. A context manager; leaving releases the session."""

    def __init__(self, configuration: Configuration, name: str, place: str) -> None:
        self._configuration = configuration
        self._name = name
        self._place = place
        self._session = ""
        self._clock = SystemClock()
        self._client: Client | None = None
        self._registered: RegisterResult | None = None

    def __enter__(self) -> Person:
        start(self._configuration)
        self.insist(lambda _: None)
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()

    @property
    def client(self) -> Client:
        """The present connection; there is one within `insist`, and after it until it is lost."""
        assert self._client is not None
        return self._client

    @property
    def attachment(self) -> str:
        """Of the present connection."""
        assert self._registered is not None
        return self._registered.attachment

    def insist(self, ask: Callable[[Client], T], seconds: float = RETRY_SECONDS) -> T:
        """What `ask` gives, over another connection where one was lost; it may be called again, so
        it says the same each time. Raises the last error when it was tried for so long."""
        deadline = self._clock.now().monotonic + seconds
        while True:
            try:
                return ask(self._joined())
            except AgentbusError as error:
                if isinstance(error, Unavailable | NotRunning | StaleAttachment):
                    self.hang_up()
                elif not error.retryable:
                    raise
                if self._clock.now().monotonic >= deadline:
                    raise
            select.select([], [], [], PAUSE_SECONDS)

    def keep(self) -> None:
        """Tells that this session lives. Raises StaleAttachment when it was over before."""
        if self.attachment not in self.client.heartbeat().attachments:
            raise StaleAttachment("this session was given up after a long silence")

    def hang_up(self) -> None:
        """Gives the connection up, and with it the session."""
        client, self._client = self._client, None
        self._registered = None
        if client is not None:
            client.close()

    def _joined(self) -> Client:
        if self._client is None:
            client = Client(locate(self._configuration.settings).socket)
            try:
                client.hello(self._configuration)
                self._registered = self._register(client)
            except BaseException:
                client.close()
                raise
            self._client = client
        return self._client

    def _register(self, client: Client) -> RegisterResult:
        """Another terminal of that name, or this one a moment ago, may hold a session still."""
        again = bool(self._session)
        for number in range(1, MOST_AT_ONCE + 1):
            session = self._session or (self._place if number == 1 else f"{self._place} {number}")
            try:
                told = client.register(
                    APPLICATION, session, agent=self._name, channels=[], again=again
                )
            except SessionAlreadyConnected:
                if again:  # of the connection that was lost; its end is noticed in a moment
                    raise Unavailable(
                        "the session is still held by the connection before"
                    ) from None
                continue
            self._session = session
            return told
        raise SessionAlreadyConnected(
            f"{MOST_AT_ONCE} commands of this kind run in this terminal; end one of them"
        )
