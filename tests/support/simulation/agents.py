"""An agent: a conversation in a harness, that sends, receives and looks back."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.simulation import workload
from tests.support.simulation.clients import Client
from tests.support.simulation.editors import Editor
from tests.support.simulation.machine import Machine
from tests.support.simulation.receivers import Historian, Receiver
from tests.support.simulation.senders import Sender
from tests.support.simulation.truth import Truth


class Agent:
    """Does nothing of itself before `begin`."""

    def __init__(self, machine: Machine, truth: Truth, name: str, calm: Callable[[], bool]) -> None:
        scheduler = machine.scheduler
        chance = scheduler.chance(f"pace {name}")
        self.client = Client(machine, name, truth.show)
        self.sender = Sender(self.client, truth, scheduler, chance.choice(workload.PACES))
        self.editor = Editor(self.client, truth, scheduler, 3 * chance.choice(workload.PACES))
        self.receiver = Receiver(self.client, truth, scheduler, chance.choice(workload.PACES), calm)
        self.historian = Historian(self.client, truth, scheduler)
        self.joined = False
        """Whether it is subscribed."""
        self._scheduler = scheduler
        self._wanted = False

    @property
    def busy(self) -> bool:
        """Whether it has begun something that it has to finish."""
        return not self.joined or self.sender.busy + self.editor.busy > 0

    def join(self) -> None:
        """Has an adapter, which starts a daemon if need be, and subscribes."""
        self.client.start()
        workload.prepare(self.client, self._scheduler, self._joined)

    def _joined(self) -> None:
        self.joined = True
        if self._wanted:
            self.begin()

    def begin(self) -> None:
        """Goes on until told otherwise; at once, or when it has joined."""
        self._wanted = True
        if self.joined:
            self.sender.begin()
            self.editor.begin()
            self.receiver.begin()
            self.historian.begin()

    def finish(self) -> None:
        """Begins nothing more, and receives as fast as it can."""
        self._wanted = False
        self.sender.stop()
        self.editor.stop()
        self.historian.stop()
        self.receiver.begin()
        self.receiver.hurry()

    def rest(self) -> None:
        """Does nothing."""
        self.receiver.stop()
