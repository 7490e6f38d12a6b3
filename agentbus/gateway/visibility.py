"""Reads that wait, for a while, until what their session has sent is visible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from agentbus.gateway.alarms import Alarms
from agentbus.gateway.condition import Condition
from agentbus.model.ids import CommitId

PATIENCE_SECONDS: Final = 5.0
LATE: Final = "not visible yet"
"""Name of the alarm at which `late` is due."""

Go = Callable[[bool], None]
"""Is told whether the wait was of use."""


class Visibility:
    """Those who wait, in the order in which they lose patience."""

    def __init__(self, alarms: Alarms, condition: Condition) -> None:
        self._alarms = alarms
        self._condition = condition
        self._waiting: list[tuple[CommitId, float, Go]] = []

    def when(self, commit: CommitId, go: Go) -> None:
        """Goes on once that commit, and what the writer had when it came, are visible: then what
        is read is not older than what anybody was told."""
        commit = max(commit, self._condition.unheard)
        if self._condition.visible >= commit:
            go(True)
        else:
            self._waiting.append((commit, self._alarms.now + PATIENCE_SECONDS, go))
            self._alarms.ensure(LATE, PATIENCE_SECONDS)

    def advanced(self) -> None:
        """More is visible."""
        if not self._waiting:
            return
        visible = self._condition.visible
        ready = [each for each in self._waiting if each[0] <= visible]
        self._waiting = [each for each in self._waiting if each[0] > visible]
        for _, _, go in ready:
            go(True)

    def late(self) -> None:
        """Ends the waits that were too long."""
        now = self._alarms.now
        over = [each for each in self._waiting if each[1] <= now]
        self._waiting = [each for each in self._waiting if each[1] > now]
        if self._waiting:
            self._alarms.set(LATE, self._waiting[0][1])
        for _, _, go in over:
            go(False)
