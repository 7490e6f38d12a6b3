"""The dedicated Redis as a process: `ModelRedis`, with a socket, a snapshot and an end.

Commands that were written are carried out, whatever becomes of who wrote them; a transaction that
was not written whole is not. Replies that were not read are lost with their reader.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from agentbus.mirror.resp import Command, Reply
from tests.support.model_redis import ModelRedis
from tests.support.simulation import pipes
from tests.support.simulation.pipes import Delays, End
from tests.support.simulation.processes import Process
from tests.support.simulation.scheduler import Scheduler

OnConnection = Callable[["Connection"], None]
OnLost = Callable[[str], None]


class Server(Process):
    """One server. The model outlives it, because the snapshot does."""

    def __init__(self, scheduler: Scheduler, model: ModelRedis, pid: int, path: str) -> None:
        super().__init__(scheduler, "redis", pid)
        self.path = path
        self.listens = False
        self._model = model
        self._ends: list[End] = []
        model.restart(pid)
        model.loading = True
        chance = scheduler.chance("redis")
        self.later(chance.uniform(0.001, 0.05), self._listen)

    def _listen(self) -> None:
        self.listens = True
        self.later(self.scheduler.chance("redis").random() ** 4 * 0.3, self._loaded)

    def _loaded(self) -> None:
        self._model.loading = False

    def take(self, end: End) -> None:
        """A client has connected."""
        self._ends.append(end)
        session = self._model.connect()

        def serve(commands: list[Command], _: End | None) -> None:
            self.write(end.outgoing, session.run_all(commands))

        end.incoming.read(self, serve, end.close)

    def died(self) -> None:
        """Connections break."""
        for end in self._ends:
            end.close()


class Connection:
    """A client's side of a connection; `lost` is called unless `close` was before."""

    def __init__(self, process: Process, end: End, lost: OnLost) -> None:
        self._process = process
        self._end = end
        self._lost: OnLost | None = lost
        self._pending: deque[tuple[int, Callable[[list[Reply]], None]]] = deque()
        self._replies: list[Reply] = []
        end.incoming.read(process, self._replied, self._ended)

    def send(self, commands: list[Command], done: Callable[[list[Reply]], None]) -> None:
        """One reply a command; none where the connection is lost before."""
        self._pending.append((len(commands), done))
        self._process.write(self._end.outgoing, list(commands))

    def _replied(self, replies: list[Any], _: End | None) -> None:
        self._replies += replies
        while self._pending and len(self._replies) >= self._pending[0][0]:
            wanted, done = self._pending.popleft()
            whole, self._replies = self._replies[:wanted], self._replies[wanted:]
            done(whole)

    def _ended(self) -> None:
        lost, self._lost = self._lost, None
        self._end.close()
        if lost is not None:
            lost("the connection to Redis was lost")

    def close(self) -> None:
        """Ends it quietly."""
        self._lost = None
        self._end.close()


class Place:
    """Where servers run, one after the other, on one snapshot."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.model = ModelRedis()
        self.server: Server | None = None
        self._scheduler = scheduler
        self._delays = Delays(scheduler, "redis")

    @property
    def holder(self) -> Server | None:
        """The server that lives, whoever started it."""
        return self.server if self.server is not None and self.server.alive else None

    def start(self, pid: int, *, keep_snapshot: bool) -> Server:
        """A new server, where none lives."""
        assert self.holder is None
        if not keep_snapshot:
            self.model.forget_snapshot()
        self.server = Server(self._scheduler, self.model, pid, f"/sim/redis-{pid}.sock")
        return self.server

    def holds_its_snapshot(self) -> bool:
        """Whether a restart would bring back what there was last."""
        return self.model.is_saved()

    def listens(self, path: str) -> bool:
        """Whether a server takes connections there."""
        server = self.holder
        return server is not None and server.listens and server.path == path

    def connect(
        self, process: Process, path: str, on_connection: OnConnection, on_lost: OnLost
    ) -> None:
        """Connects, a little later."""
        process.later(self._delays(), self._connect, process, path, on_connection, on_lost)

    def _connect(
        self, process: Process, path: str, on_connection: OnConnection, on_lost: OnLost
    ) -> None:
        server = self.holder
        if server is None or not self.listens(path):
            on_lost(f"Redis cannot be reached at {path}")
            return
        mine, theirs = pipes.connect(self._scheduler, self._delays)
        server.take(theirs)
        on_connection(Connection(process, mine, on_lost))
