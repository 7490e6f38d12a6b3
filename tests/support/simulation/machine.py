"""One computer: its disk, its processes, the place of the bus' socket, and who may be the daemon.

The daemon's lock is held by the supervisor and by every child: a new daemon waits until the last of
them has gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from agentbus.config import Settings
from agentbus.errors import AgentbusError, Unavailable
from tests.support.simulation.children import Application, Child
from tests.support.simulation.daemon import Daemon, OnReport
from tests.support.simulation.disk import Disk
from tests.support.simulation.gateway import Gateway
from tests.support.simulation.indexer import Indexer
from tests.support.simulation.pipes import End
from tests.support.simulation.processes import Process
from tests.support.simulation.projector import Projector
from tests.support.simulation.redis import Place
from tests.support.simulation.scheduler import Scheduler
from tests.support.simulation.sockets import Listener
from tests.support.simulation.writer import Writer

RETRY_SECONDS: Final = 0.05
OWNER_SECONDS: Final = 60.0
"""As `supervisor.locks` has them."""

HALF_WIPED: Final = 0.1
"""How often a reset cannot remove everything."""


class SeededTokens:
    """Names that are the same for the same seed."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._chance = scheduler.chance("tokens")

    def token(self) -> str:
        """32 hexadecimal digits."""
        return f"{self._chance.getrandbits(128):032x}"


class Machine:
    """`committed` is called when the database has changed, `wiped` when it may be gone."""

    def __init__(
        self,
        scheduler: Scheduler,
        disk: Disk,
        settings: Settings,
        committed: Callable[[], None],
        wiped: Callable[[], None],
    ) -> None:
        self.scheduler = scheduler
        self.disk = disk
        self.settings = settings
        self.tokens = SeededTokens(scheduler)
        self.redis = Place(scheduler)
        self.daemon: Daemon | None = None
        self._committed = committed
        self._wiped = wiped
        self._pids = 100
        self._locking: list[Process] = []

    def pid(self) -> int:
        """A number no process had before."""
        self._pids += 1
        return self._pids

    # ---- the daemon

    @property
    def listener(self) -> Listener | None:
        """Where adapters connect to."""
        return None if self.daemon is None else self.daemon.listener

    def start_daemon(self, report: OnReport) -> None:
        """`agentbus daemon`, by somebody who waits for its report."""
        chance = self.scheduler.chance("machine")
        until = self.scheduler.now + OWNER_SECONDS
        self.scheduler.after(chance.uniform(0.02, 0.3), self._take_lock, report, until)

    def _take_lock(self, report: OnReport, until: float) -> None:
        self._locking = [process for process in self._locking if process.alive]
        daemon = self.daemon
        if not self._locking:
            self._finish_reset()
            self.daemon = Daemon(self, self.pid(), report)
            self._locking.append(self.daemon)
        elif daemon is not None and daemon.alive and daemon.serves:
            report(None)
        elif self.scheduler.now > until:
            report(Unavailable("another daemon neither answers nor ends"))
        else:
            self.scheduler.after(RETRY_SECONDS, self._take_lock, report, until)

    def wipe(self) -> str:
        """A reset removes what the bus holds; why it could not, empty otherwise."""
        chance = self.scheduler.chance("machine")
        files = chance.randrange(6) if chance.random() < HALF_WIPED else None
        self.redis.model.forget_snapshot()
        whole = self.disk.wipe(files)
        self._wiped()
        return "" if whole else "it is held by somebody"

    def _finish_reset(self) -> None:
        if self.disk.half_wiped:
            self.redis.model.forget_snapshot()
            self.disk.wipe()
            self._wiped()

    @staticmethod
    def ended_early() -> AgentbusError:
        """What an unfinished report means."""
        return Unavailable("the daemon ended before it was ready; its log tells why")

    # ---- its processes

    def fork(self, name: str, control: End, links: Mapping[str, End], listener: Listener) -> Child:
        """A child of the daemon's."""
        make: dict[str, Callable[[Child], Application]] = {
            "writer": self._writer,
            "projector": self._projector,
            "indexer": self._indexer,
            "gateway": partial(self._gateway, listener),
        }
        child = Child(self.scheduler, name, self.pid(), control, links, make[name])
        self._locking.append(child)
        return child

    def _writer(self, child: Child) -> Writer:
        return Writer(child, self.disk, self.settings, self.tokens, self._committed)

    def _projector(self, child: Child) -> Projector:
        return Projector(child, self.disk, self.redis, self.tokens.token())

    def _indexer(self, child: Child) -> Indexer:
        return Indexer(child, self.disk)

    def _gateway(self, listener: Listener, child: Child) -> Gateway:
        return Gateway(child, listener, self.redis, self.disk, self.settings)

    def application(self, name: str) -> Application | None:
        """What the living child of that name runs."""
        found = self.find(name)
        return found.application if isinstance(found, Child) else None

    def find(self, name: str) -> Process | None:
        """The living process of that name."""
        if name == "supervisor":
            found: Process | None = self.daemon
        elif name == "redis":
            found = self.redis.holder
        else:
            found = None if self.daemon is None else self.daemon.children.get(name)
        return found if found is not None and found.alive else None
