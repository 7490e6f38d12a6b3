"""Waiting until a session has undelivered messages: counts only, no cursor moves.

The daemon is asked again and again, so that whoever waits survives its restarts; it is not started.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from agentbus.client.client import Client
from agentbus.config import Configuration
from agentbus.errors import AgentbusError, NotFound, NotRunning
from agentbus.runtime.clock import SystemClock
from agentbus.runtime.paths import locate
from agentbus.wire.rpc import InboxEntry

LOOK_SECONDS: Final = 0.5


class Session(msgspec.Struct, frozen=True):
    """Whose messages are waited for."""

    application: str
    native: str
    child: str | None = None


class News:
    """Tells whether counts show something that has not been told; pure.

    A message that comes while another one is read leaves the number as it was, but not the age of
    the oldest.
    """

    def __init__(self) -> None:
        self._told: dict[str, tuple[int, str | None]] = {}

    def tell(self, entries: Iterable[InboxEntry]) -> bool:
        """Takes the counts as they are now."""
        now = {entry.channel: (entry.undelivered, entry.oldest_at) for entry in entries}
        before, self._told = self._told, now
        return any(
            count > before.get(name, (0, None))[0] or (count and oldest != before[name][1])
            for name, (count, oldest) in now.items()
        )


class Waiter:
    """Asks the daemon for the counts of one session, over a connection that comes back."""

    def __init__(self, configuration: Configuration, session: Session, channels: list[str]) -> None:
        self._path = locate(configuration.settings).socket
        self._session = session
        self._channels = channels
        self._client: Client | None = None

    def close(self) -> None:
        """Ends the connection."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def look(self) -> list[InboxEntry] | None:
        """The counts that are wanted; None where the daemon cannot tell at the moment.

        Raises what will not pass by itself: NotFound, VersionMismatch, InvalidArgument, and
        Unavailable where a sandbox keeps this process from the socket.
        """
        try:
            entries = self._ask()
        except AgentbusError as error:
            self.close()
            forbidden = isinstance(error.__cause__, PermissionError)
            if not forbidden and (error.retryable or isinstance(error, NotRunning)):
                return None
            raise
        missing = set(self._channels) - {entry.channel for entry in entries}
        if missing:
            raise NotFound(f"the session does not listen to {', '.join(sorted(missing))}")
        return [entry for entry in entries if entry.channel in self._channels or not self._channels]

    def _ask(self) -> list[InboxEntry]:
        if self._client is None:
            self._client = Client(self._path)
            self._client.hello()
        who = self._session
        told = self._client.inbox(application=who.application, session=who.native, child=who.child)
        return told.channels


def wait(
    waiter: Waiter,
    timeout: float | None,
    tell: Callable[[list[InboxEntry]], None],
    *,
    follow: bool = False,
) -> bool:
    """Tells the counts once there are any, with `follow` each time there is news; False where
    `timeout` seconds passed (with `follow`: without any)."""
    clock = SystemClock()
    deadline = None if timeout is None else clock.now().monotonic + timeout
    news, told = News(), False
    while True:
        entries = waiter.look()
        if entries is not None and news.tell(entries):
            tell([entry for entry in entries if entry.undelivered])
            told = True
            if not follow:
                return True
        left = LOOK_SECONDS if deadline is None else deadline - clock.now().monotonic
        if left <= 0:
            return told
        select.select([], [], [], min(left, LOOK_SECONDS))
