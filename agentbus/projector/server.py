"""The server behind the socket: is it ours, can it serve us, how is it, when is it saved."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentbus.errors import RedisIncompatible
from agentbus.mirror.resp import Command, Refused, Reply
from agentbus.wire.links import RedisUp

OLDEST: Final = {"redis": (7, 0), "valkey": (7, 2)}
NEEDED: Final = (
    b"BGSAVE",
    b"EXEC",
    b"FLUSHALL",
    b"HDEL",
    b"HGET",
    b"HLEN",
    b"HMGET",
    b"HSET",
    b"INFO",
    b"MULTI",
    b"SAVE",
    b"XADD",
    b"XDEL",
    b"XLEN",
    b"XRANGE",
    b"XREVRANGE",
    b"XTRIM",
)
QUERY_ENGINE: Final = (b"FT.AGGREGATE", b"FT.CONFIG", b"FT.CREATE", b"FT.INFO", b"FT.SEARCH")
"""Modules that have only some of these cannot do what `search.query_engine` asks."""

QUESTIONS: Final[list[Command]] = [
    (b"INFO", b"server"),
    (b"INFO", b"persistence"),
    (b"COMMAND", b"INFO", *NEEDED, *QUERY_ENGINE),
    (b"CONFIG", b"GET", b"maxmemory-policy"),
]
"""`examine` reads the replies."""

PERSISTENCE: Final[Command] = (b"INFO", b"persistence")
MEMORY: Final[Command] = (b"INFO", b"memory")


class Server(msgspec.Struct, frozen=True):
    """A server that is ours and fit. `search` is `query_engine` where it has one, else `fts5`."""

    flavour: str
    version: str
    pid: int
    search: str


class Loading(msgspec.Struct, frozen=True):
    """The server reads its snapshot; ask again."""


class Unfit(msgspec.Struct, frozen=True):
    """`fatal`: its successor would be no better."""

    fatal: bool
    error: RedisIncompatible


def examine(replies: list[Reply], up: RedisUp) -> Server | Loading | Unfit:
    """Judges the server that answered `QUESTIONS` by what the supervisor said of it."""
    server, persistence, commands, policy = replies
    facts = info(server)
    if not facts or info(persistence).get("loading") == "1":
        return Loading()
    if facts.get("process_id") != str(up.pid):
        return Unfit(False, _foreign(up, facts.get("process_id", "unknown")))
    flavour, version = _release(facts)
    problem = _too_old(flavour, version) or _missing(commands) or _policy(policy)
    if problem:
        text = f"{up.executable} ({flavour} {version}) cannot serve the bus: {problem}"
        return Unfit(True, RedisIncompatible(text))
    known = _known(commands)
    search = "query_engine" if known.issuperset(QUERY_ENGINE) else "fts5"
    return Server(flavour, version, up.pid, search)


def info(reply: Reply) -> dict[str, str]:
    """The fields of an `INFO` reply; empty where it was refused."""
    if not isinstance(reply, bytes):
        return {}
    lines = reply.decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line and line[0] != "#")


def dataset_bytes(reply: Reply) -> int:
    """What the contents take, from the reply to `MEMORY`."""
    return int(info(reply).get("used_memory_dataset", "0"))


def _foreign(up: RedisUp, pid: str) -> RedisIncompatible:
    return RedisIncompatible(
        f"the server at {up.socket_path} is process {pid}, not {up.pid}: "
        "it is somebody else's and is left alone"
    )


def _release(facts: dict[str, str]) -> tuple[str, str]:
    valkey = facts.get("valkey_version")
    return ("valkey", valkey) if valkey else ("redis", facts.get("redis_version", "0"))


def _too_old(flavour: str, version: str) -> str | None:
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    needed = OLDEST[flavour]
    if numbers >= needed:
        return None
    return f"at least {flavour} {needed[0]}.{needed[1]} is needed; install a newer one"


def _known(commands: Reply) -> set[bytes]:
    entries = commands if isinstance(commands, list) else []
    return {bytes(entry[0]).upper() for entry in entries if entry}


def _missing(commands: Reply) -> str | None:
    if isinstance(commands, Refused):
        return f"it does not say which commands it has ({commands.brief})"
    known = _known(commands)
    missing = [name.decode() for name in NEEDED if name not in known]
    return f"it has no {', '.join(missing)}" if missing else None


def _policy(reply: Reply) -> str | None:
    if isinstance(reply, list) and reply[1:] == [b"noeviction"]:
        return None
    return "its maxmemory-policy must be noeviction, else it drops messages"


# ---- snapshots -----------------------------------------------------------------------------------

SNAPSHOT_CHANGES: Final = 20_000
SNAPSHOT_SECONDS: Final = 300.0
"""A snapshot is due after so many changes, or so long after the first one."""

SPACING_SECONDS: Final = 60.0
"""And never sooner after the one before: it writes everything anew."""


class Persistence(msgspec.Struct, frozen=True):
    """Changes that no snapshot has, whether one is being written, whether the last one failed."""

    changes: int
    saving: bool
    failed: bool


def persistence(reply: Reply) -> Persistence | None:
    """From the reply to `PERSISTENCE`; None where it was refused."""
    facts = info(reply)
    if not facts:
        return None
    return Persistence(
        int(facts.get("rdb_changes_since_last_save", "0")),
        facts.get("rdb_bgsave_in_progress") == "1",
        facts.get("rdb_last_bgsave_status") == "err",
    )


class Snapshots:
    """Decides when the server writes its snapshot; `failed` is how the last one went."""

    def __init__(self) -> None:
        self.failed = False
        self._earliest: float | None = None
        self._changed_at: float | None = None

    def is_due(self, facts: Persistence, now: float) -> bool:
        """Whether to ask for one; the answer yes counts as having asked."""
        self.failed = facts.failed
        if self._earliest is None:
            self._earliest = now + SPACING_SECONDS
        if facts.saving or not facts.changes:
            self._changed_at = None
            return False
        if self._changed_at is None:
            self._changed_at = now
        waited = now - self._changed_at >= SNAPSHOT_SECONDS
        if now < self._earliest or not (waited or facts.changes >= SNAPSHOT_CHANGES):
            return False
        self._earliest, self._changed_at = now + SPACING_SECONDS, None
        return True
