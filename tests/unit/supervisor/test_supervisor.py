from __future__ import annotations

import os

from agentbus.config import load
from agentbus.runtime import exits
from agentbus.runtime.owners import Owner
from agentbus.supervisor import locks, supervisor


def run(tmp_path, monkeypatch, *report_fds):
    """A daemon where process 7 serves already."""
    file = tmp_path / "config.json"
    file.write_text(f'{{"data_directory": "{tmp_path}/data"}}')
    monkeypatch.setenv("AGENTBUS_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(locks, "take_daemon", lambda _: Owner(7, "/s"))
    monkeypatch.setattr(os, "umask", lambda _: 0)
    return supervisor.run_daemon(load(str(file)), report_fds)


def test_a_second_daemon_by_hand_says_who_runs(tmp_path, monkeypatch, capsys):
    assert run(tmp_path, monkeypatch) == exits.OK
    assert capsys.readouterr().err == "agentbus is already running (process 7)\n"


def test_a_second_daemon_with_a_starter_tells_only_that(tmp_path, monkeypatch, capsys):
    reading, writing = os.pipe()
    assert run(tmp_path, monkeypatch, writing) == exits.OK
    with open(reading, "rb") as pipe:
        assert pipe.read() == b'{"ready":true,"pid":7}\n'
    assert capsys.readouterr().err == ""
