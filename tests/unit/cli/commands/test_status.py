from __future__ import annotations

import json

import pytest

from agentbus.cli.app import main
from agentbus.errors import NotRunning, Unavailable


@pytest.fixture
def bus(monkeypatch):
    """Answers or refuses in the place of a daemon."""

    def answer(reply):
        def status(*_):
            if isinstance(reply, Exception):
                raise reply
            return reply

        monkeypatch.setattr("agentbus.client.admin.status", status)

    return answer


def test_a_stopped_bus_has_its_own_exit_code_and_document(bus, capsys):
    bus(NotRunning("no daemon runs"))
    assert main(["status", "--json"]) == 3
    assert json.loads(capsys.readouterr().out) == {"state": "stopped"}
    assert main(["status"]) == 3
    assert capsys.readouterr().out == "agentbus is not running\n"


@pytest.mark.parametrize(
    ("state", "code"), [("ready", 0), ("recovering", 4), ("starting", 4), ("stopping", 4)]
)
def test_only_a_ready_bus_is_a_success(bus, state, code):
    bus({"state": state})
    assert main(["status"]) == code
    assert main(["status", "--json"]) == code


def test_json_is_the_whole_document_as_it_came(bus, capsys):
    document = {"state": "ready", "version": "0.1.0", "of a later version": [1, {"a": None}]}
    bus(document)
    main(["status", "--json"])
    assert json.loads(capsys.readouterr().out) == document


def test_an_error_leaves_stdout_empty(bus, capsys):
    bus(Unavailable("the daemon does not answer"))
    assert main(["status", "--json"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "agentbus: unavailable: the daemon does not answer\n"
