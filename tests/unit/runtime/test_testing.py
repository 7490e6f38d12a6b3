from __future__ import annotations

import json
import os

import pytest

from agentbus.errors import ConfigInvalid
from agentbus.runtime.clock import ShiftedClock, SystemClock, clock
from agentbus.runtime.testing import requested

RUNTIME = {"AGENTBUS_RUNTIME_DIR": "/tmp/x"}


def test_nothing_is_asked_for_in_earnest():
    assert requested({}) is None
    assert requested({"AGENTBUS_TEST": ""}) is None


def test_it_is_refused_on_somebodys_own_bus():
    with pytest.raises(ConfigInvalid, match="AGENTBUS_RUNTIME_DIR"):
        requested({"AGENTBUS_TEST": "{}"})


@pytest.mark.parametrize("text", ["{", "[]", '{"clock": 1}', '{"clock_file": 5}'])
def test_what_cannot_be_read_is_refused(text):
    with pytest.raises(ConfigInvalid, match="AGENTBUS_TEST"):
        requested({"AGENTBUS_TEST": text, **RUNTIME})


def test_the_machines_clocks_are_used_unless_a_test_shifts_them(monkeypatch):
    monkeypatch.delenv("AGENTBUS_TEST", raising=False)
    assert isinstance(clock(), SystemClock)
    monkeypatch.setenv("AGENTBUS_RUNTIME_DIR", "/tmp/x")
    monkeypatch.setenv("AGENTBUS_TEST", '{"clock_file": "/tmp/none"}')
    assert isinstance(clock(), ShiftedClock)


def test_a_shifted_clock_follows_its_file(tmp_path):
    file = tmp_path / "clock"
    shifted, real = ShiftedClock(str(file)), SystemClock()
    assert abs(shifted.now().wall - real.now().wall) < 5
    for step, hours in enumerate((1, 100, -3)):
        file.write_text(json.dumps({"wall": hours * 3600}))
        os.utime(file, ns=(step, step))
        assert abs(shifted.now().wall - real.now().wall - hours * 3600) < 5
        assert abs(shifted.now().monotonic - real.now().monotonic) < 5
    file.write_text(json.dumps({"monotonic": 60}))
    os.utime(file, ns=(9, 9))
    assert abs(shifted.now().monotonic - real.now().monotonic - 60) < 5
    file.unlink()
    assert abs(shifted.now().monotonic - real.now().monotonic) < 5
