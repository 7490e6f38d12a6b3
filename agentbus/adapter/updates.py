"""The resource that tells what waits, and that clients which listen hear of its changes.

Changes that come while the client has not read the last word, or shortly after it, are told
together: a client that reads again whenever it is told sees all of them.
"""

from __future__ import annotations

from typing import Final

from agentbus.adapter.answers import Answers
from agentbus.wire.mcp import McpServer, Resource

INBOX: Final = Resource(
    "agentbus://inbox",
    "inbox",
    "Inbox",
    "How many messages wait for you in each of your channels; recv returns them. Changes are told.",
)

PAUSE_SECONDS: Final = 0.2
"""Between two words about changes."""


class Updates:
    """Writes them to the harness."""

    def __init__(self, mcp: McpServer, answers: Answers) -> None:
        self._mcp = mcp
        self._answers = answers
        self._changed = False
        self._quiet_until = 0.0
        self._tokens: list[int] = []

    def changed(self) -> None:
        """Something waits that did not, or the reverse."""
        self._changed = self._mcp.listens(INBOX.uri)

    @property
    def next_time(self) -> float | None:
        """When `run` should be called although nothing happens."""
        return self._quiet_until if self._changed and not self._tokens else None

    def run(self, now: float) -> None:
        """Tells of changes, if it is time."""
        self._tokens = [each for each in self._tokens if self._answers.is_unwritten(each)]
        if self._changed and not self._tokens and self._quiet_until <= now:
            self._changed = False
            self._quiet_until = now + PAUSE_SECONDS
            self._tokens = [self._answers.write(line) for line in self._mcp.updated(INBOX.uri)]
