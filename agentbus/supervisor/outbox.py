"""The effects of one event, in the making."""

from __future__ import annotations

from collections.abc import Iterable

from agentbus.supervisor import events as ev
from agentbus.supervisor.handover import End
from agentbus.supervisor.process import Process
from agentbus.supervisor.roster import Roster
from agentbus.supervisor.states import State
from agentbus.wire.links import Processes, ProcessInfo, RedisDown, RedisUp, WriterHindered


class Outbox:
    """Collects effects; knows who wants to be told what."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._effects: list[ev.Effect] = []
        self._listed: Processes | None = None

    def take(self) -> list[ev.Effect]:
        """What has been collected, and from now on nothing."""
        effects, self._effects = self._effects, []
        return effects

    def add(self, effect: ev.Effect) -> None:
        """Any effect."""
        self._effects.append(effect)

    def note(self, level: str, action: str, **fields: object) -> None:
        """A line for the log."""
        self.add(ev.Note(level, action, fields))

    def tell(self, process: Process, message: object) -> None:
        """A message for a child, if it still reads."""
        if process.serving or process.state is State.STOPPING:
            self.add(ev.Tell(process.name, message))

    def tell_redis(self, message: RedisUp | RedisDown) -> None:
        """A message for those who work with Redis."""
        for process, service in self._roster.children():
            if service.told_redis:
                self.tell(process, message)

    def tell_processes(self, supervisor: ProcessInfo) -> None:
        """The list of processes for those who show it, if it has changed."""
        listed = Processes([supervisor, *self._roster.infos()], self._roster.given_up())
        if listed == self._listed:
            return
        self._listed = listed
        self.tell_managers(listed)

    def tell_managers(self, message: Processes | WriterHindered) -> None:
        """A message for those who show how the processes are."""
        for process, service in self._roster.children():
            if service.told_processes:
                self.tell(process, message)

    def drop(self, ends: Iterable[End]) -> None:
        """Ends that nobody needs."""
        for end in ends:
            self.add(ev.DropEnd(end))
