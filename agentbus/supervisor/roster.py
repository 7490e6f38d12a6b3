"""All processes of the daemon, and the questions that are about more than one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentbus.supervisor.process import Process
from agentbus.supervisor.services import REDIS, Service
from agentbus.supervisor.states import State
from agentbus.wire.links import ProcessInfo


class Roster:
    """The services of a table, in its order, and Redis."""

    def __init__(self, services: Sequence[Service]) -> None:
        self.services = {service.name: service for service in services}
        self.redis = Process(REDIS, beats=False)
        self.searching = False
        """Whether the services that search are needed."""
        self._all = {name: Process(name) for name in self.services} | {REDIS: self.redis}

    def __getitem__(self, name: str) -> Process:
        return self._all[name]

    def __iter__(self) -> Iterator[Process]:
        return iter(self._all.values())

    def wanted(self, process: Process) -> bool:
        """Whether it is to run at all."""
        service = self.services.get(process.name)
        return service is None or not service.searches or self.searching

    def children(self) -> Iterator[tuple[Process, Service]]:
        """The forked ones, whether they live or not."""
        return ((self._all[name], service) for name, service in self.services.items())

    def serving(self) -> frozenset[str]:
        """Names of the services that can be handed links."""
        return frozenset(process.name for process, _ in self.children() if process.serving)

    def complete(self) -> bool:
        """Whether every needed service is ready."""
        return all(
            process.state is State.READY for process, service in self.children() if service.needed
        )

    def next_to_stop(self) -> Process | None:
        """The one whose end the others wait for; None when all are gone."""
        order = [*reversed([process for process, _ in self.children()]), self.redis]
        return next((process for process in order if process.alive), None)

    def listening(self) -> bool:
        """Whether somebody lives who accepts connections."""
        return any(process.alive and service.listens for process, service in self.children())

    def infos(self) -> list[ProcessInfo]:
        """Those that live, for `status`."""
        return [process.info() for process in self if process.alive]

    def given_up(self) -> list[str]:
        """Names of those that the daemon goes on without."""
        return [process.name for process in self if process.given_up]

    def times(self) -> list[float]:
        """When something is to be done about any of them."""
        return [
            time for process in self for time in (process.due, process.deadline) if time is not None
        ]
