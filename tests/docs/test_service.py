"""The files for service managers are well formed, and what they start is the daemon."""

from __future__ import annotations

import configparser
import os
import plistlib
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemon import BOUND, Daemon, wait

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "contrib/service/agentbus.service"
PLIST = ROOT / "contrib/service/agentbus.plist"
AGENTBUS = str(Path(sys.executable).parent / "agentbus")


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNIT)
    return parser


def arguments() -> dict[str, list[str]]:
    """What follows the program, by whose file it is."""
    plist = plistlib.loads(PLIST.read_bytes())
    return {
        "systemd": unit()["Service"]["ExecStart"].split()[1:],
        "launchd": plist["ProgramArguments"][1:],
    }


@pytest.mark.parametrize("manager", ["systemd", "launchd"])
def test_what_is_started_serves_and_ends_in_order_when_it_is_told_to(manager):
    with Daemon() as bus:
        command = [AGENTBUS, *arguments()[manager]]
        process = subprocess.Popen(command, env=bus.environment, start_new_session=True)
        assert wait(lambda: os.path.exists(bus.paths.socket))
        bus.wait_until(lambda status: status["state"] == "ready")
        assert bus.pid("supervisor") == process.pid
        second = subprocess.run(command, env=bus.environment, timeout=BOUND, check=False)
        assert second.returncode == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(BOUND) == 0
        assert bus.ended()


def test_both_give_a_stop_more_time_than_it_may_take():
    plist = plistlib.loads(PLIST.read_bytes())
    assert plist["ExitTimeOut"] >= 45
    assert int(unit()["Service"]["TimeoutStopSec"]) >= 45


def test_an_orderly_stop_is_not_undone():
    assert unit()["Service"]["Restart"] == "on-failure"
    assert plistlib.loads(PLIST.read_bytes())["KeepAlive"] == {"SuccessfulExit": False}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_finds_nothing_wrong_with_its_unit(tmp_path):
    program = unit()["Service"]["ExecStart"].split()[0]
    target = tmp_path / "agentbus.service"
    target.write_text(UNIT.read_text().replace(program, AGENTBUS))
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(
        ["systemd-analyze", "--user", "--man=no", "verify", str(target)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
