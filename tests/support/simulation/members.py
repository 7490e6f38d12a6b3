"""An agent's subscriptions: it follows all channels, but leaves one at times, and comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.support.simulation.clients import Arguments, Client, Result
from tests.support.simulation.records import require
from tests.support.simulation.scheduler import Scheduler
from tests.support.simulation.truth import Truth
from tests.support.simulation.workload import CHANNELS, MISSING, SIDE, code_of

LOOK_SECONDS: Final = 0.3
LEAVES: Final = 0.03
RETURNS: Final = 0.2
RENEWS: Final = 0.05
"""How often at each look."""

OWN: Final = 0.3
"""How many want their own messages, too, in the channel that nobody follows without asking."""


class Member:
    """Looks after one thing at a time."""

    def __init__(self, client: Client, truth: Truth, scheduler: Scheduler) -> None:
        self._client = client
        self._truth = truth
        self._scheduler = scheduler
        self._chance = scheduler.chance(f"member {client.name}")
        self._includes = self._chance.random() < OWN
        self._left: str | None = None
        self._restless = False
        self._busy = False
        self._created = False

    @property
    def settled(self) -> bool:
        """Whether it follows everything and wants nothing else."""
        return not self._busy and self._left is None and self._wanting() is None

    def begin(self) -> None:
        """Looks from now on, for ever."""
        self._scheduler.after(self._chance.random() * LOOK_SECONDS, self._look)

    def roam(self, *, restless: bool) -> None:
        """Whether it leaves channels."""
        self._restless = restless
        if not restless:
            self._left = None

    def _wanting(self) -> str | None:
        for channel in CHANNELS:
            if channel != self._left and not self._truth.follows(self._client.name, channel):
                return channel
        return None

    def _look(self) -> None:
        self._scheduler.after(self._chance.uniform(0.5, 1.5) * LOOK_SECONDS, self._look)
        if self._busy:
            return
        missing = self._wanting()
        if missing is not None:
            self._follow(missing)
        elif self._left is not None:
            if self._chance.random() < RETURNS:
                self._left = None
        elif self._restless:
            if self._chance.random() < LEAVES:
                self._left = self._chance.choice(CHANNELS)
                self._call("unsubscribe", self._left, self._unfollowed)
            elif self._chance.random() < RENEWS:
                self._follow(self._chance.choice(CHANNELS))

    def _call(
        self, tool: str, channel: str, then: Callable[[str, Result | None], None], **more: object
    ) -> None:
        whose = (self._client.name, channel)

        def told(result: Result | None) -> None:
            self._busy = False
            if result is not None and "error" not in result:
                self._truth.changing.pop(whose, None)
            then(channel, result)

        arguments: Arguments = {"name" if tool == "create_channel" else "channel": channel, **more}
        if tool != "create_channel":
            self._truth.changing[whose] = None
        self._busy = self._client.call(tool, arguments, told) is not None

    def _follow(self, channel: str) -> None:
        if channel == SIDE and not self._created:
            self._call("create_channel", channel, self._made)
            return
        more = {"include_own": True} if channel == SIDE and self._includes else {}
        self._call("subscribe", channel, self._followed, **more)

    def _made(self, _channel: str, result: Result | None) -> None:
        self._created = result is not None and code_of(result) is None

    def _followed(self, channel: str, result: Result | None) -> None:
        if result is None:
            return
        if code_of(result, MISSING) == MISSING:
            require(channel == SIDE, "a channel that every bus has is missing", result)
            self._created = False
        elif "error" not in result:
            self._truth.followed(self._client.name, channel)

    def _unfollowed(self, channel: str, result: Result | None) -> None:
        if result is None or code_of(result, MISSING) is not None:
            self._left = None  # perhaps it was carried out: it is looked at again
        elif self._left == channel:
            self._truth.left(self._client.name, channel)
