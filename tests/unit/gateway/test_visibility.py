"""Waits end when what is waited for is visible, or when they have been long enough."""

from __future__ import annotations

from agentbus.gateway.alarms import Alarms
from agentbus.gateway.condition import Condition
from agentbus.gateway.visibility import LATE, PATIENCE_SECONDS, Visibility
from agentbus.model.ids import CommitId
from agentbus.model.ports import Instant


class Waits:
    def __init__(self) -> None:
        self.alarms, self.condition = Alarms(), Condition()
        self.visibility = Visibility(self.alarms, self.condition)
        self.ended: list[tuple[int, bool]] = []

    def wait(self, commit: int) -> None:
        self.visibility.when(CommitId(commit), lambda seen: self.ended.append((commit, seen)))

    def show(self, commit: int) -> None:
        self.condition.visible = CommitId(commit)
        self.visibility.advanced()

    def sleep(self, seconds: float) -> None:
        self.alarms.set_time(Instant(self.alarms.now + seconds, 0.0))
        if LATE in self.alarms.take_due():
            self.visibility.late()


def test_what_is_visible_already_is_not_waited_for() -> None:
    waits = Waits()
    waits.wait(0)
    assert waits.ended == [(0, True)]


def test_each_goes_on_when_its_commit_is_visible() -> None:
    waits = Waits()
    for commit in (5, 3, 4):
        waits.wait(commit)
    waits.show(4)
    assert waits.ended == [(3, True), (4, True)]
    waits.show(9)
    assert waits.ended[2:] == [(5, True)]


def test_each_waits_only_so_long() -> None:
    waits = Waits()
    waits.wait(5)
    waits.sleep(PATIENCE_SECONDS / 2)
    waits.wait(6)
    waits.sleep(PATIENCE_SECONDS / 2)
    assert waits.ended == [(5, False)]
    waits.sleep(PATIENCE_SECONDS / 2)
    assert waits.ended == [(5, False), (6, False)]
    waits.show(9)
    assert len(waits.ended) == 2


def test_what_the_writer_had_when_it_came_is_waited_for_too() -> None:
    waits = Waits()
    waits.condition.unheard = CommitId(7)
    waits.wait(0)
    waits.show(6)
    assert waits.ended == []
    waits.show(7)
    assert waits.ended == [(0, True)]
