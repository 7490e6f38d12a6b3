"""Named deadlines over one timer."""

from __future__ import annotations

from agentbus.projector.alarms import Alarms


def test_alarms_ring_once_the_earliest_first() -> None:
    alarms = Alarms()
    alarms.set("b", 2.0)
    alarms.set("a", 3.0)
    alarms.set("c", 9.0)
    assert alarms.due(5.0) == ["b", "a"]
    assert alarms.due(5.0) == []
    assert alarms.due(9.0) == ["c"]


def test_the_shell_is_told_only_when_the_earliest_changes() -> None:
    alarms = Alarms()
    assert alarms.wake_at() is None
    alarms.set("a", 5.0)
    assert alarms.wake_at() == 5.0
    alarms.set("b", 7.0)
    assert alarms.wake_at() is None
    alarms.set("c", 3.0)
    assert alarms.wake_at() == 3.0
    alarms.cancel("c")
    assert alarms.wake_at() == 5.0


def test_an_early_waking_asks_again() -> None:
    alarms = Alarms()
    alarms.set("a", 5.0)
    assert alarms.wake_at() == 5.0
    assert alarms.due(4.9) == []
    assert alarms.wake_at() == 5.0
