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
from tests.support.simulation import checks, knobs
from tests.support.simulation.agents import Agent
from tests.support.simulation.disk import Disk
from tests.support.simulation.faults import Faults
from tests.support.simulation.machine import Machine
from tests.support.simulation.records import require
from tests.support.simulation.scheduler import Scheduler
from tests.support.simulation.truth import Truth

PATIENCE: Final = 150.0
"""Virtual seconds after the last fault within which everything must have been received."""

GLANCE: Final = 0.1
STOPPING: Final = 60.0

REST: Final = 25.0
"""And then for the last cursors: own messages are passed with a heartbeat."""


class World:
    """To be closed, or used as a context."""

    def __init__(self, seed: int, agents: int = 3, settings: Settings | None = None) -> None:
        self.disk = Disk()
        self.scheduler = Scheduler(seed, self.disk.directory.encode())
        settings = settings or Settings(data_directory="/sim", send_messages_per_second=10_000)
        terms = knobs.terms(settings)
        clocks = (self.scheduler.instant, self.scheduler.leapt)
        self.truth = Truth(self.disk.database, terms, *clocks)
        self.machine = Machine(
            self.scheduler, self.disk, settings, self.truth.committed, self.truth.wiped
        )
        self.faults = Faults(self)
        self.agents: list[Agent] = []
        for _ in range(agents):
            self.add_agent()

    def add_agent(self) -> Agent:
        """One more, who has not joined yet."""
        name = f"agent-{len(self.agents)}"
        agent = Agent(self.machine, self.truth, name, lambda: self.faults.calm)
        self.agents.append(agent)
        return agent

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
        for name in ("supervisor", "writer", "projector", "gateway", "indexer"):
            process = self.machine.find(name)
            if process is not None:
                process.kill()
        self.truth.close()
        self.disk.close()

    # ---- what happens

    def start(self) -> None:
        """Every agent has an adapter, which have started a daemon, and is subscribed."""
        for agent in self.agents:
            agent.join()
        self.wait(lambda: all(agent.joined for agent in self.agents), "joining", 60.0)

    def run(self, seconds: float, faults_every: float | None = None) -> None:
        """Random messages, and faults if so wished."""
        for agent in self.agents:
            agent.begin()
        if faults_every is not None:
            self.faults.begin(faults_every)
        self.scheduler.run_until(lambda: False, seconds)

    def settle(self) -> None:
        """Everything comes to rest, and is checked."""
        self.faults.heal()
        for agent in self.agents:
            agent.finish()
        self._come_to_rest()
        for agent in self.agents:
            agent.rest()
        self.scheduler.run_until(lambda: False, REST)
        checks.audit(self.truth, self.machine)

    def stop(self) -> None:
        """An orderly stop; what it leaves behind is checked."""
        daemon = self.machine.daemon
        require(daemon is not None and daemon.alive, "there is no daemon to stop")
        assert daemon is not None
        daemon.stop()
        self.wait(lambda: not daemon.alive, "stopping", STOPPING)
        checks.stopped(self.truth, self.machine)

    def _come_to_rest(self) -> None:
        end = self.scheduler.now + PATIENCE
        while not self._is_quiet():
            require(self.scheduler.now < end, "coming to rest takes too long", self.truth.missing())
            self.scheduler.run_until(lambda: False, GLANCE)

    def _is_quiet(self) -> bool:
        busy = any(agent.busy for agent in self.agents)
        return not busy and self.serves and not self.truth.missing()

    @property
    def serves(self) -> bool:
        """Whether there is a daemon whose processes are all there."""
        daemon = self.machine.daemon
        return daemon is not None and daemon.alive and daemon.serves

    def wait(self, reached: Callable[[], bool], what: str, seconds: float) -> None:
        """Raises Violation where something does not come about in time."""
        require(self.scheduler.run_until(reached, seconds), f"{what} takes too long", seconds)
