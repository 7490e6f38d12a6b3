"""Daemons that do not run, do not answer, or are not the right one."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

import agentbus
from tests.support.daemon import Daemon
from tests.support.stdio import Adapter
from tests.system.doctor.conftest import Doctor, Place
from tests.system.errors.conftest import Stubborn, inject


@pytest.fixture
def doctor(place: Place, home: Path) -> Doctor:
    """Of a bus that runs."""
    bus = place()
    bus.start()
    doctor = Doctor(bus, home)
    doctor.bus = bus
    doctor.connect()
    return doctor


@pytest.fixture
def bus(doctor: Doctor) -> Daemon:
    """The bus of the doctor."""
    return doctor.bus


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The program as it is, to be upgraded."""
    target = tmp_path / "copy/agentbus"
    shutil.copytree(Path(agentbus.__file__).parent, target)
    return target


def test_nothing_is_wrong_with_a_bus_in_use(doctor, bus):
    with Adapter(bus.environment) as adapter:
        adapter.call("whoami")
        told = doctor()
        assert told.code == 0
        assert [each for each in told.document["checks"] if each["result"] != "ok"] == []
        shown = doctor.run("doctor")
    assert shown.returncode == 0
    assert shown.stdout.endswith("\nNothing is wrong.\n")
    assert "\x1b" not in shown.stdout


def test_settings_that_are_not_the_daemons(doctor, bus):
    text = Path(bus.config_path).read_text()
    Path(bus.config_path).write_text(text.replace("{", '{"log_level": "debug", ', 1))
    told = doctor().problem("upgrade")
    assert bus.config_path in told
    assert told.endswith("\nagentbus stop")


def test_an_older_daemon_of_another_protocol(doctor, bus):
    newer = inject(bus, "from agentbus.wire import rpc\nrpc.PROTOCOL = 99\n")
    told = doctor(PYTHONPATH=newer["PYTHONPATH"]).problem("upgrade")
    assert "protocol 99" in told
    assert told.endswith("\nagentbus stop")


def test_an_older_daemon_of_the_same_protocol(doctor, copy):
    version = copy / "__init__.py"
    version.write_text(version.read_text().replace(agentbus.__version__, "7.0.0"))
    told = doctor(PYTHONPATH=str(copy.parent)).warning("upgrade")
    assert f"the daemon is agentbus {agentbus.__version__}, this command 7.0.0" in told
    assert "\nagentbus stop" in told


def test_a_daemon_that_is_older_than_the_files_it_was_started_from(doctor, copy):
    assert doctor(PYTHONPATH=str(copy.parent)).of("upgrade", "ok")
    ahead = time.time() + 60
    os.utime(copy / "gateway/core.py", (ahead, ahead))
    told = doctor(PYTHONPATH=str(copy.parent)).warning("upgrade")
    assert "newer than the daemon" in told
    assert "\nagentbus stop" in told


def test_a_gateway_that_hangs_is_not_waited_for(doctor, bus):
    gateway = bus.pid("gateway")
    os.kill(gateway, signal.SIGSTOP)
    try:
        began = time.monotonic()
        told = doctor()
        took = time.monotonic() - began
    finally:
        os.kill(gateway, signal.SIGCONT)
    assert "does not answer" in told.problem("daemon")
    assert "\nagentbus stop" in told.problem("daemon")
    assert took < 8


def test_a_daemon_that_could_not_be_started_is_remembered(place, home):
    bus = place(redis_executable="no-such-server")
    doctor = Doctor(bus, home)
    doctor.connect()
    assert doctor.run("daemon").returncode == 1
    told = doctor().of("daemon", "problem")
    assert "the last one failed: redis_missing: " in told
    assert "no-such-server" in told
    assert "agentbus daemon" in told


def test_another_program_at_the_socket(place, home):
    bus = place()
    os.mkdir(bus.paths.runtime_directory, 0o700)
    doctor = Doctor(bus, home)
    doctor.connect()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(bus.paths.socket)
        os.chmod(bus.paths.socket, 0o600)
        other.listen()
        told = doctor().problem("daemon")
    assert "another program listens" in told
    assert "end that program" in told


def test_data_that_another_daemon_has(doctor, bus, home):
    elsewhere = os.path.join(bus.directory, "second")
    told = doctor(AGENTBUS_RUNTIME_DIR=elsewhere).problem("daemon")
    runtime = bus.paths.runtime_directory
    assert f"process {bus.pid('supervisor')} of {runtime}" in told
    assert f"\nAGENTBUS_RUNTIME_DIR={runtime} agentbus stop" in told


def test_a_bus_that_recovers(place: Place, home: Path, tmp_path: Path):
    stubborn = Stubborn(str(tmp_path))
    bus = place(redis_executable=stubborn.executable)
    bus.start()
    doctor = Doctor(bus, home)
    doctor.connect()
    stubborn.refuse()
    bus.kill("redis")
    bus.wait_until(lambda status: status["state"] == "recovering")
    told = doctor().problem("state")
    assert "no message is taken now: " in told
    assert "agentbus status --watch" in told


def test_what_was_restarted_is_a_warning_that_names_the_log(doctor, bus):
    killed = bus.kill("projector")
    bus.wait_replaced("projector", killed)
    bus.wait_until(lambda status: status["state"] == "ready")
    told = doctor().warning("state")
    assert "projector was restarted once" in told
    assert bus.paths.log("supervisor") in told


@pytest.mark.skipif(sys.platform != "linux", reason="only there the kernel counts by itself")
def test_a_clock_that_was_set_while_the_daemon_ran(place, home):
    bus = place()
    clock = bus.clock()
    bus.start()
    doctor = Doctor(bus, home)
    doctor.connect()
    del doctor.environment["AGENTBUS_TEST"]
    assert "clock" not in {each["check"] for each in doctor().document["checks"]}
    clock.jump(7200.0, 0.0)
    told = doctor().warning("clock")
    assert "set 2 h ahead" in told
