"""Many deadlines, one of them next."""

from __future__ import annotations

from math import inf

from agentbus.gateway.alarms import Alarms
from agentbus.model.ports import Instant


def at(seconds: float) -> Alarms:
    alarms = Alarms()
    alarms.set_time(Instant(seconds, 0.0))
    return alarms


def test_the_earliest_deadline_is_next() -> None:
    alarms = at(0.0)
    assert alarms.next == inf
    alarms.set("b", 2.0)
    alarms.set("a", 1.0)
    assert alarms.next == 1.0
    alarms.set("a", None)
    assert alarms.next == 2.0
    alarms.set("b", None)
    alarms.set("b", None)
    assert alarms.next == inf


def test_what_is_due_is_taken_once() -> None:
    alarms = at(5.0)
    for name, when in (("late", 9.0), ("first", 5.0), ("second", 1.0)):
        alarms.set(name, when)
    assert alarms.take_due() == ["first", "second"]
    assert alarms.take_due() == []
    assert alarms.next == 9.0


def test_a_deadline_is_ensured_and_not_moved() -> None:
    alarms = at(5.0)
    alarms.ensure("a", 2.0)
    alarms.ensure("a", 9.0)
    assert alarms.has("a")
    assert alarms.next == 7.0
