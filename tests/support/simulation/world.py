"""A whole bus, its machine and its agents, in one process and in virtual time.

world = World(seed)         everything that follows, follows from the seed
world.start()               a daemon, an adapter for each client, all subscribed
world.run(seconds)          senders send, receivers receive, faults happen
world.settle()              no more faults or messages; everything is received, and checked
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Final

from agentbus.config import Settings
from tests.support.simulation import checks, workload
from tests.support.simulation.clients import Client
from tests.support.simulation.disk import Disk
from tests.support.simulation.faults import Faults
from tests.support.simulation.machine import Machine
from tests.support.simulation.receivers import Historian, Receiver
from tests.support.simulation.scheduler import Scheduler
from tests.support.simulation.senders import Sender
from tests.support.simulation.truth import Truth, require

PATIENCE: Final = 150.0
"""Virtual seconds after the last fault within which everything must have been received."""

REST: Final = 25.0
"""And then for the last cursors: own messages are passed with a heartbeat."""


class World:
    """To be closed, or used as a context."""

    def __init__(self, seed: int, clients: int = 3, settings: Settings | None = None) -> None:
        self.disk = Disk()
        self.scheduler = Scheduler(seed, self.disk.directory.encode())
        self.truth = Truth(self.disk.database)
        settings = settings or Settings(data_directory="/sim", send_messages_per_second=10_000)
        self.machine = Machine(self.scheduler, self.disk, settings, self.truth.committed)
        self.clients = [
            Client(self.machine, f"agent-{number}", self._shown) for number in range(clients)
        ]
        self.senders = [self._sender(client) for client in self.clients]
        self.receivers = [self._receiver(client) for client in self.clients]
        self.historians = [Historian(client, self.truth, self.scheduler) for client in self.clients]
        self.faults = Faults(self)

    def _pace(self, client: Client) -> float:
        return float(self.scheduler.chance(f"pace {client.name}").choice((0.05, 0.2, 1)))

    def _sender(self, client: Client) -> Sender:
        return Sender(client, self.truth, self.scheduler, self._pace(client))

    def _receiver(self, client: Client) -> Receiver:
        pace = self._pace(client)
        return Receiver(client, self.truth, self.scheduler, pace, lambda: self.faults.calm)

    def _shown(self, client: Client, life: int, result: dict[str, object]) -> None:
        self.truth.show(client.name, life, result)

    def __enter__(self) -> World:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives up the files."""
        for name in ("supervisor", "writer", "projector", "gateway"):
            process = self.machine.find(name)
            if process is not None:
                process.kill()
        self.truth.close()
        self.disk.close()

    # ---- what happens

    def start(self) -> None:
        """Every client has an adapter, which have started a daemon, and is subscribed."""
        prepared: list[str] = []
        for client in self.clients:
            client.start()
            workload.prepare(client, self.scheduler, prepared.append)
        self.wait(lambda: len(prepared) == len(self.clients), "subscribing", 60.0)

    def run(self, seconds: float, faults_every: float | None = None) -> None:
        """Random messages, and faults if so wished."""
        for sender in self.senders:
            sender.begin()
        for receiver in self.receivers:
            receiver.begin()
        for historian in self.historians:
            historian.begin()
        if faults_every is not None:
            self.faults.begin(faults_every)
        self.scheduler.run_until(lambda: False, seconds)

    def settle(self) -> None:
        """Everything comes to rest, and is checked."""
        self.faults.heal()
        for sender in self.senders:
            sender.stop()
        for historian in self.historians:
            historian.stop()
        for receiver in self.receivers:
            receiver.hurry()
        self.wait(self._is_quiet, "coming to rest", PATIENCE)
        for receiver in self.receivers:
            receiver.stop()
        self.scheduler.run_until(lambda: False, REST)
        checks.audit(self.truth, self.machine)

    def _is_quiet(self) -> bool:
        busy = any(sender.busy for sender in self.senders)
        return not busy and self.serves and not self.truth.missing()

    @property
    def serves(self) -> bool:
        """Whether there is a daemon whose processes are all there."""
        daemon = self.machine.daemon
        return daemon is not None and daemon.alive and daemon.serves

    def wait(self, reached: Callable[[], bool], what: str, seconds: float) -> None:
        """Raises Violation where something does not come about in time."""
        require(self.scheduler.run_until(reached, seconds), f"{what} takes too long", seconds)
