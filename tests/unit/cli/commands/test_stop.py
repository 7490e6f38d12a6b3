from __future__ import annotations

from agentbus.cli.app import main
from agentbus.errors import NotRunning


def test_stopping_what_does_not_run_is_fine(monkeypatch, capsys):
    def refuse(*_):
        raise NotRunning("no daemon runs")

    monkeypatch.setattr("agentbus.client.admin.stop", refuse)
    assert main(["stop"]) == 0
    assert capsys.readouterr().out == "agentbus is not running\n"


def test_a_stopped_bus_is_said_to_be_stopped(monkeypatch, capsys):
    monkeypatch.setattr("agentbus.client.admin.stop", lambda *_: None)
    assert main(["stop"]) == 0
    assert capsys.readouterr().out == "agentbus has stopped\n"
