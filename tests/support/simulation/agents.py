"""An agent: a conversation in a harness, that sends, receives and looks back."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.simulation import workload
from tests.support.simulation.clients import Client
from tests.support.simulation.editors import Editor
from tests.support.simulation.finders import Finder
from tests.support.simulation.machine import Machine
from tests.support.simulation.members import Member
from tests.support.simulation.receivers import Receiver
from tests.support.simulation.senders import Sender
from tests.support.simulation.truth import Truth


class Agent:
    """Does nothing of itself before `begin`."""

    def __init__(self, machine: Machine, truth: Truth, name: str, calm: Callable[[], bool]) -> None:
        scheduler = machine.scheduler
        chance = scheduler.chance(f"pace {name}")
        self.client = Client(machine, name, truth.show)
        self.member = Member(self.client, truth, scheduler)
        hooked = bool(machine.settings.inspection_command)
        sending, looking = chance.choice(workload.PACES), chance.choice(workload.PACES)
        self.finder = Finder(self.client, truth, scheduler, looking)
        self.sender = Sender(self.client, truth, scheduler, sending, hooked, self.finder.look_up)
        self.editor = Editor(self.client, truth, scheduler, 3 * chance.choice(workload.PACES))
        self.receiver = Receiver(self.client, truth, scheduler, chance.choice(workload.PACES), calm)

    @property
    def busy(self) -> bool:
        """Whether it has begun something that it has to finish."""
        return not self.joined or self.sender.busy + self.editor.busy > 0

    @property
    def joined(self) -> bool:
        """Whether it is subscribed to all it wants."""
        return self.member.settled

    def join(self) -> None:
        """Has an adapter, which starts a daemon if need be, and subscribes."""
        self.client.start()
        self.member.begin()

    def begin(self) -> None:
        """Goes on until told otherwise."""
        self.member.roam(restless=True)
        self.sender.begin()
        self.editor.begin()
        self.receiver.begin()
        self.finder.begin()

    def finish(self) -> None:
        """Begins nothing more, and receives as fast as it can."""
        self.member.roam(restless=False)
        self.sender.stop()
        self.editor.stop()
        self.finder.stop()
        self.receiver.begin()
        self.receiver.hurry()

    def rest(self) -> None:
        """Does nothing."""
        self.receiver.stop()
