"""Points: what is armed happens once, at its time, to whom it is meant for."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from agentbus.errors import ConfigInvalid, StorageFailed
from agentbus.runtime import faults
from agentbus.runtime.faults import Faults, InjectedFault, Point
from tests.support.faults import Points

POINT = Point.COMMITTED


class Echo:
    """A core whose effects are named in its event."""

    name = "echo"

    def __init__(self) -> None:
        self.handled: list[str] = []

    def handle(self, event: str, now: float) -> list[str]:
        self.handled.append(event)
        return event.split()


@pytest.fixture
def points(tmp_path: Path) -> Points:
    return Points(str(tmp_path))


@pytest.fixture
def writer(tmp_path: Path) -> Faults:
    return Faults(str(tmp_path), "writer")


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    return sent


def test_nothing_happens_where_nothing_is_armed(
    writer: Faults, signals: list[tuple[int, int]]
) -> None:
    for point in Point:
        writer(point)
    assert signals == []


@pytest.mark.parametrize(("action", "number"), [("kill", signal.SIGKILL), ("stop", signal.SIGSTOP)])
def test_a_process_does_it_to_itself_and_once(
    points: Points, writer: Faults, signals: list[tuple[int, int]], action: str, number: int
) -> None:
    points.arm(POINT, action=action)
    writer(Point.UNCOMMITTED)
    assert signals == []
    writer(POINT)
    writer(POINT)
    assert signals == [(os.getpid(), number)]
    fired = points.fired(POINT)
    assert (fired.process, fired.pid) == ("writer", os.getpid())


@pytest.mark.parametrize(("action", "error"), [("raise", InjectedFault), ("refuse", StorageFailed)])
def test_a_point_may_raise(
    points: Points, writer: Faults, action: str, error: type[Exception]
) -> None:
    points.arm(POINT, action=action)
    with pytest.raises(error, match="committed"):
        writer(POINT)
    writer(POINT)


def test_times_are_counted_across_processes(
    points: Points, writer: Faults, tmp_path: Path, signals: list[tuple[int, int]]
) -> None:
    points.arm(POINT, times=3)
    writer(POINT)
    Faults(str(tmp_path), "writer")(POINT)
    assert signals == []
    assert not points.has_fired(POINT)
    writer(POINT)
    assert len(signals) == 1


def test_a_point_may_be_for_one_process_alone(
    points: Points, writer: Faults, tmp_path: Path, signals: list[tuple[int, int]]
) -> None:
    points.arm(POINT, process="gateway", times=2)
    gateway = Faults(str(tmp_path), "gateway")
    gateway(POINT)
    writer(POINT)
    assert signals == []
    gateway(POINT)
    assert len(signals) == 1


def test_a_point_can_be_armed_again(
    points: Points, writer: Faults, signals: list[tuple[int, int]]
) -> None:
    for _ in range(2):
        points.arm(POINT)
        assert not points.has_fired(POINT)
        writer(POINT)
    assert len(signals) == 2


def test_who_has_to_prepare_it_claims_it_first(
    points: Points, writer: Faults, signals: list[tuple[int, int]]
) -> None:
    points.arm(POINT)
    act = writer.claim(POINT)
    assert writer.claim(POINT) is None
    assert act is not None
    assert signals == []
    act()
    assert len(signals) == 1


def test_in_earnest_there_is_neither_a_port_nor_a_watched_core(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert faults.requested("writer") is faults.no_fault
    monkeypatch.setenv("AGENTBUS_RUNTIME_DIR", "/tmp/none")
    monkeypatch.setenv("AGENTBUS_TEST", "{}")
    assert faults.requested("writer") is faults.no_fault
    core = Echo()
    assert faults.watched(core, faults.no_fault) is core


def test_points_are_refused_for_a_bus_in_use(
    points: Points, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in points.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AGENTBUS_RUNTIME_DIR", raising=False)
    with pytest.raises(ConfigInvalid, match="AGENTBUS_RUNTIME_DIR"):
        faults.requested("writer")
    monkeypatch.setenv("AGENTBUS_RUNTIME_DIR", "/tmp/none")
    assert isinstance(faults.requested("writer"), Faults)


def test_a_watched_core_passes_points_between_its_effects() -> None:
    passed: list[Point] = []
    core = Echo()
    watched = faults.watched(
        core,
        passed.append,
        event=lambda event: Point.VISIBLE if event == "a b" else None,
        before=lambda effect: Point.ANSWERING if effect == "b" else None,
        after=lambda effect: Point.REPORTED if effect == "a" else None,
    )
    effects = iter(watched.handle("a b", 0.0))
    assert (core.handled, passed) == ([], [])
    assert next(effects) == "a"
    assert (core.handled, passed) == (["a b"], [Point.VISIBLE])
    assert next(effects) == "b"
    assert passed == [Point.VISIBLE, Point.REPORTED, Point.ANSWERING]
    assert list(effects) == []
    assert watched.name == "echo"
