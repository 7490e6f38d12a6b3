"""What a starting bus waits for, told to a person while it does."""

from __future__ import annotations

import select
import sys
from typing import Any, Final

from agentbus.cli.text import one_line
from agentbus.client import admin
from agentbus.config import MIB, Configuration
from agentbus.errors import NotRunning, Unavailable
from agentbus.runtime.clock import SystemClock
from agentbus.runtime.paths import locate

QUIET_SECONDS: Final = 2.0
"""A bus that is ready so soon needs no words."""

STUCK_SECONDS: Final = 60.0
"""A bus in which nothing has moved for so long is not waited for; it goes on by itself."""

LOOK_SECONDS: Final = 0.25


class Progress:
    """Looks at a daemon that is on its way, and tells on stderr what is new."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._clock = SystemClock()
        self._began = self._moved_at = self._clock.now().monotonic
        self._seen: Any = None
        self._text = self._told = ""

    def look(self) -> str:
        """The state of the bus, after telling what it waits for where that is new."""
        document, told = self._status()
        state: str = document["state"]
        now = self._clock.now().monotonic
        seen = _moving(document)
        if seen != self._seen:
            self._seen, self._moved_at = seen, now
        self._text = waits_for(document)
        late = now - self._began >= QUIET_SECONDS
        if told and state != "ready" and late and self._text != self._told:
            self._told = self._text
            sys.stderr.write(f"agentbus is not ready yet: {self._text}\n")
        return state

    def wait(self) -> None:
        """Until the bus is ready. Raises Unavailable where it stops, or does not move."""
        while (state := self.look()) != "ready":
            still = self._clock.now().monotonic - self._moved_at
            if state == "stopping" or still > STUCK_SECONDS:
                logs = locate(self._configuration.settings).log_directory
                raise Unavailable(f"the bus is not ready: {self._text}; {logs} tells more")
            select.select([], [], [], LOOK_SECONDS)

    def _status(self) -> tuple[dict[str, Any], bool]:
        """And whether the daemon told it: one that cannot be asked may be about to say itself why
        it ends, and whoever started it hears that."""
        try:
            return admin.status(self._configuration), True
        except (NotRunning, Unavailable) as error:
            return {"state": "starting", "reasons": [error.message]}, False


def waits_for(document: dict[str, Any]) -> str:
    """One line about a status that is not ready."""
    redis, sqlite = document.get("redis") or {}, document.get("sqlite") or {}
    parts = [one_line(reason) for reason in document.get("reasons", [])]
    if redis.get("lag_commits") and sqlite.get("commit_id"):
        parts.append(
            f"{sqlite['commit_id'] - redis['lag_commits']} of {sqlite['commit_id']} commits"
        )
    if redis.get("dataset_bytes"):
        parts.append(f"{redis['dataset_bytes'] // MIB} MiB in Redis")
    return "; ".join(parts) or f"it is {document['state']}"


def _moving(document: dict[str, Any]) -> Any:
    """What changes while something goes on."""
    redis = document.get("redis") or {}
    known = ("pid", "commit_id", "dataset_bytes", "healthy")
    return document["state"], document.get("reasons"), [redis.get(name) for name in known]
