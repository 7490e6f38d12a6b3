"""As much of a Redis as the bus uses, in memory and deterministic.

`ModelRedis` is the server, with its contents and its last snapshot; `Session` is one connection's
side of it (`MULTI` belongs to a connection). Replies are those of RESP2 as `mirror.resp` gives
them. `tests/integration/mirror/test_model.py` compares it with the real one.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

from agentbus.mirror.resp import Command, Refused, Reply

Stream = dict[int, list[bytes]]
"""Fields by position, ascending."""

OOM = Refused("OOM command not allowed when used memory > 'maxmemory'.")


class ModelRedis:
    """A server. `pid` is what it says of itself; `restart` brings back what was saved."""

    def __init__(self, pid: int = 4711, version: str = "9.1.2") -> None:
        self.pid = pid
        self.version = version
        self.flavour = "valkey"
        self.policy = b"noeviction"
        self.missing: set[bytes] = set()
        self.loading = False
        self.out_of_memory = False
        self.query_engine = False
        """Whether it has `FT.*`: an index that is made and complete at once, and never searched."""
        self.indexing = False
        self.has_index = False
        self.changes = 0
        self.saves = 0
        self.saving = False
        self.save_failed = False
        self.refusals: dict[bytes, list[Refused]] = {}
        self.hashes: dict[bytes, dict[bytes, bytes]] = {}
        self.streams: dict[bytes, Stream] = {}
        self._tops: dict[bytes, int] = {}
        self._saved: tuple[object, ...] = ({}, {}, {}, False)
        self._commands: dict[bytes, Callable[[Command], Reply]] = {
            b"BGSAVE": self._save,
            b"COMMAND": self._command,
            b"CONFIG": lambda _: [b"maxmemory-policy", self.policy],
            b"DEL": self._del,
            b"FLUSHALL": self._flushall,
            b"HDEL": self._hdel,
            b"HGET": lambda command: self.hashes.get(command[1], {}).get(command[2]),
            b"HLEN": lambda command: len(self.hashes.get(command[1], {})),
            b"HMGET": lambda command: [
                self.hashes.get(command[1], {}).get(field) for field in command[2:]
            ],
            b"HSET": self._hset,
            b"INFO": self._info,
            b"PING": lambda _: b"PONG",
            b"SAVE": self._save,
            b"XADD": self._xadd,
            b"XDEL": self._xdel,
            b"XLEN": lambda command: len(self.streams.get(command[1], {})),
            b"XRANGE": self._xrange,
            b"XREVRANGE": self._xrange,
            b"XTRIM": self._xtrim,
        }
        self._engine: dict[bytes, Callable[[Command], Reply]] = {
            b"FT.AGGREGATE": lambda _: [0],
            b"FT.CONFIG": lambda _: b"OK",
            b"FT.CREATE": self._create_index,
            b"FT.INFO": self._index_info,
            b"FT.SEARCH": lambda _: [0],
        }

    def connect(self) -> Session:
        """A new connection."""
        return Session(self)

    def restart(self, pid: int) -> None:
        """Killed and started again, as another process, from its snapshot."""
        self.pid = pid
        saved = copy.deepcopy(self._saved)
        self.hashes, self.streams, self._tops, self.has_index = saved  # type: ignore[assignment]
        self.changes = 0
        self.saving = False

    def is_saved(self) -> bool:
        """Whether the last snapshot holds everything."""
        return self._saved == (self.hashes, self.streams, self._tops, self.has_index)

    def forget_snapshot(self) -> None:
        """The next restart begins with nothing."""
        self._saved = ({}, {}, {}, False)

    def refuse(self, name: bytes, text: str = "ERR refused by the test", skip: int = 0) -> None:
        """The command of this name is refused once, after so many that are carried out."""
        self.refusals[name] = [Refused("")] * skip + [Refused(text)]

    def envelopes(self, key: bytes) -> list[tuple[int, bytes]]:
        """Positions and envelopes of a stream."""
        return [(seq, fields[1]) for seq, fields in self.streams.get(key, {}).items()]

    def run(self, command: Command) -> Reply:
        """One command outside of any transaction, whoever asks."""
        name = command[0]
        refusal = self.refuses(name)
        if refusal is not None:
            return refusal
        handler = self._known().get(name)
        if handler is None or name in self.missing:
            return Refused(f"ERR unknown command '{name.decode()}'")
        return handler(command)

    def refuses(self, name: bytes) -> Refused | None:
        """What `refuse` has asked for."""
        waiting = self.refusals.get(name)
        refusal = waiting.pop(0) if waiting else None
        return refusal if refusal is not None and refusal.text else None

    def _known(self) -> dict[bytes, Callable[[Command], Reply]]:
        return self._commands | self._engine if self.query_engine else self._commands

    def refuses_queued(self, command: Command) -> Refused | None:
        """What is refused before it is even queued in a transaction."""
        if self.loading and command[0] not in (b"INFO", b"COMMAND", b"CONFIG"):
            return Refused("LOADING Valkey is loading the dataset in memory")
        if self.out_of_memory and command[0] in (b"XADD", b"HSET"):
            return OOM
        return None

    def _info(self, command: Command) -> bytes:
        fields: dict[bytes, dict[str, object]] = {
            b"server": {
                "redis_version": "7.2.4" if self.flavour == "valkey" else self.version,
                **({"valkey_version": self.version} if self.flavour == "valkey" else {}),
                "process_id": self.pid,
            },
            b"persistence": {
                "loading": int(self.loading),
                "rdb_changes_since_last_save": self.changes,
                "rdb_bgsave_in_progress": int(self.saving),
                "rdb_last_bgsave_status": "err" if self.save_failed else "ok",
            },
            b"memory": {"used_memory_dataset": self._size()},
        }
        lines = [f"# {command[1].decode().title()}"]
        lines += [f"{key}:{value}" for key, value in fields[command[1]].items()]
        return "\r\n".join([*lines, ""]).encode()

    def _size(self) -> int:
        entries = (fields for stream in self.streams.values() for fields in stream.values())
        size = sum(len(part) for fields in entries for part in fields)
        contents = (pair for fields in self.hashes.values() for pair in fields.items())
        return size + sum(len(field) + len(value) for field, value in contents)

    def _command(self, command: Command) -> Reply:
        known = [*self._known(), b"MULTI", b"EXEC"]
        return [
            [name.lower(), -1] if name in known and name not in self.missing else None
            for name in command[2:]
        ]

    def _create_index(self, _: Command) -> Reply:
        if self.has_index:
            return Refused("Index already exists")
        self.has_index = True
        return b"OK"

    def _index_info(self, _: Command) -> Reply:
        if not self.has_index:
            return Refused("Unknown index name")
        return [b"indexing", b"%d" % self.indexing]

    def _del(self, command: Command) -> int:
        found = [key for key in command[1:] if key in self.hashes or key in self.streams]
        for key in found:
            self.hashes.pop(key, None)
            self.streams.pop(key, None)
            self._tops.pop(key, None)
        self.changes += len(found)
        return len(found)

    def _flushall(self, _: Command) -> bytes:
        self.has_index = False
        self.hashes.clear()
        self.streams.clear()
        self._tops.clear()
        self.changes += 1
        return b"OK"

    def _save(self, _: Command) -> bytes:
        self._saved = copy.deepcopy((self.hashes, self.streams, self._tops, self.has_index))
        self.changes = 0
        self.saves += 1
        return b"OK"

    def _hset(self, command: Command) -> int:
        fields = self.hashes.setdefault(command[1], {})
        pairs = dict(zip(command[2::2], command[3::2], strict=True))
        added = len(pairs.keys() - fields.keys())
        fields.update(pairs)
        self.changes += len(pairs)
        return added

    def _hdel(self, command: Command) -> int:
        fields = self.hashes.get(command[1], {})
        found = [field for field in command[2:] if fields.pop(field, None) is not None]
        if not fields:
            self.hashes.pop(command[1], None)
        self.changes += len(found)
        return len(found)

    def _xdel(self, command: Command) -> int:
        stream = self.streams.get(command[1], {})
        seqs = [int(identity.removesuffix(b"-0")) for identity in command[2:]]
        found = [seq for seq in seqs if stream.pop(seq, None) is not None]
        self.changes += len(found)
        return len(found)

    def _xtrim(self, command: Command) -> int:
        _, key, strategy, exactly, identity = command
        assert (strategy, exactly) == (b"MINID", b"=")
        stream = self.streams.get(key, {})
        oldest = int(identity.removesuffix(b"-0"))
        gone = [seq for seq in stream if seq < oldest]
        for seq in gone:
            del stream[seq]
        self.changes += len(gone)
        return len(gone)

    def _xadd(self, command: Command) -> Reply:
        _, key, identity, *fields = command
        seq = int(identity.removesuffix(b"-0"))
        if seq <= self._tops.get(key, 0):
            return Refused(
                "ERR The ID specified in XADD is equal or smaller than the target stream top item"
            )
        self.streams.setdefault(key, {})[seq] = list(fields)
        self._tops[key] = seq
        self.changes += 1
        return identity

    def _xrange(self, command: Command) -> Reply:
        name, key, start, end, *limit = command
        reverse = name == b"XREVRANGE"
        low, high = (end, start) if reverse else (start, end)
        first, last = _edge(low, 1), _edge(high, -1)
        stream = self.streams.get(key, {})
        found = [seq for seq in stream if first <= seq <= last]
        count = int(limit[1]) if limit else len(found)
        chosen = (found[::-1] if reverse else found)[:count]
        return [[b"%d-0" % seq, stream[seq]] for seq in chosen]


def _edge(bound: bytes, inwards: int) -> float:
    """The outermost position that a bound admits; whole numbers, so an open one is the next."""
    if bound in (b"-", b"+"):
        return -math.inf if bound == b"-" else math.inf
    edge = int(bound.removeprefix(b"(").removesuffix(b"-0"))
    return edge + inwards if bound.startswith(b"(") else edge


class Session:
    """One connection."""

    def __init__(self, server: ModelRedis) -> None:
        self._server = server
        self._queue: list[Command] | None = None
        self._aborted = False

    def run_all(self, commands: list[Command]) -> list[Reply]:
        """The replies to a pipeline."""
        return [self.run(command) for command in commands]

    def run(self, command: Command) -> Reply:
        """The reply to one command."""
        refusal = self._server.refuses_queued(command)
        if refusal is not None:
            self._aborted = True
            return refusal
        if command[0] == b"MULTI":
            self._queue, self._aborted = [], False
            return b"OK"
        if command[0] == b"EXEC":
            return self._exec()
        if self._queue is None:
            return self._server.run(command)
        self._queue.append(command)
        return b"QUEUED"

    def _exec(self) -> Reply:
        queue, self._queue = self._queue, None
        if queue is None:
            return Refused("ERR EXEC without MULTI")
        if self._aborted:
            return Refused("EXECABORT Transaction discarded because of previous errors.")
        refusal = self._server.refuses(b"EXEC")
        if refusal is not None:
            return refusal
        return [self._server.run(command) for command in queue]
