"""The status document as the CLI reads it: typed, and patient with what is missing.

An older or newer daemon may leave members out or add some; what people see depends on neither.
`docs/reference/status.md` describes the document.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Process(msgspec.Struct, frozen=True):
    """One process of the daemon."""

    name: str
    pid: int
    uptime_s: float = 0.0
    restarts: int = 0
    cpu_percent: float | None = None
    rss_bytes: int | None = None


class Redis(msgspec.Struct, frozen=True):
    """The dedicated server."""

    healthy: bool = False
    flavour: str = ""
    version: str = ""
    pid: int | None = None
    dataset_bytes: int = 0
    search: str = ""
    commit_id: int = 0
    lag_commits: int = 0


class Sqlite(msgspec.Struct, frozen=True):
    """The database file."""

    path: str = ""
    logical_bytes: int = 0
    file_bytes: int = 0
    wal_bytes: int = 0
    commit_id: int = 0
    synchronous: str = ""


class Budget(msgspec.Struct, frozen=True):
    """Bytes used of a budget."""

    used: int = 0
    limit: int = 0
    percent: float = 0.0


class Rates(msgspec.Struct, frozen=True):
    """Messages a second; `recent` of each of the last seconds."""

    accepted_per_s: float = 0.0
    delivered_per_s: float = 0.0
    accepted_recent: list[float] = []
    delivered_recent: list[float] = []


class Latency(msgspec.Struct, frozen=True):
    """Milliseconds; of `mean_recent` those seconds are None in which nothing came."""

    p50: float | None = None
    p99: float | None = None
    mean_recent: list[float | None] = []


class Index(msgspec.Struct, frozen=True):
    """The text index, where Redis has none of its own."""

    commit_id: int = 0
    lag_commits: int = 0
    documents: int = 0


class Window(msgspec.Struct, frozen=True):
    """What an adapter holds that was not handed off."""

    messages: int = 0
    bytes: int = 0


class Subscription(msgspec.Struct, frozen=True):
    """A session's place in a channel; `lag` counts what is undelivered."""

    channel: str
    position: int = 0
    lag: int = 0
    oldest_undelivered_at: str | None = None
    expires_at: str | None = None


class Session(msgspec.Struct, frozen=True):
    """A conversation of an agent, attached or not."""

    display_name: str
    application: str = ""
    session: str = ""
    child: str | None = None
    repository: str | None = None
    attached: bool = False
    since: str | None = None
    subscriptions: list[Subscription] = []
    window: Window = Window()

    @property
    def waiting(self) -> int:
        """What was not delivered, of all channels."""
        return sum(each.lag for each in self.subscriptions)


class Channel(msgspec.Struct, frozen=True):
    """A channel and what is retained of it."""

    name: str
    kind: str = "ordinary"
    messages: int = 0
    oldest_seq: int | None = None
    newest_seq: int | None = None
    subscribers: int = 0


class Snapshot(msgspec.Struct, frozen=True):
    """All of it, at one moment."""

    version: str = ""
    state: str = "stopped"
    uptime_s: float = 0.0
    config_path: str = ""
    processes: list[Process] = []
    reasons: list[str] = []
    redis: Redis | None = None
    sqlite: Sqlite | None = None
    budgets: dict[str, Budget] = {}
    totals: dict[str, int] = {}
    rates: Rates = Rates()
    latency_ms: dict[str, Latency] = {}
    index: Index | None = None
    sessions: list[Session] = []
    channels: list[Channel] = []
    warnings: list[str] = []


def read(document: dict[str, Any]) -> Snapshot:
    """null means not known, and is read as if it were absent.

    Raises msgspec.ValidationError where a member is of another type than documented.
    """
    return msgspec.convert(_known(document), Snapshot)


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _known(member) for key, member in value.items() if member is not None}
    return [_known(item) for item in value] if isinstance(value, list) else value
