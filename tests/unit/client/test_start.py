"""What a starting daemon says, and what it is told of its surroundings."""

from __future__ import annotations

import pytest

from agentbus.client.start import Report, clean, surroundings, understand
from agentbus.config import load
from agentbus.errors import RedisMissing, Unavailable


def test_a_ready_daemon_tells_its_pid():
    assert understand(b'{"ready":true,"pid":7}\n') == Report(ready=True, pid=7)


def test_a_daemon_that_cannot_start_tells_its_error():
    told = understand(
        b'{"error":{"code":"redis_missing","message":"install one","retryable":false}}\n'
    )
    assert isinstance(told, RedisMissing)
    assert told.message == "install one"


@pytest.mark.parametrize("told", [b"", b"\n", b"nonsense\n", b"[]\n", b'{"ready":true'])
def test_a_daemon_that_dies_or_mumbles_is_unavailable(told):
    assert isinstance(understand(told), Unavailable)


def test_a_daemon_that_serves_all_harnesses_inherits_none_of_their_variables():
    environ = {
        "HOME": "/h",
        "PATH": "/bin",
        "AGENTBUS_RUNTIME_DIR": "/r",
        "CLAUDECODE": "1",
        "CLAUDE_CODE_SESSION_ID": "x",
        "CODEX_HOME": "x",
        "GEMINI_SESSION_ID": "x",
        "OPENCODE_PID": "x",
        "MCP_SERVER": "x",
        "ANTHROPIC_API_KEY": "x",
    }
    assert set(clean(environ)) == {"HOME", "PATH", "AGENTBUS_RUNTIME_DIR"}


@pytest.mark.parametrize("given", ["run/bus", "/r", "~/bus"])
def test_a_daemon_and_its_starter_use_the_same_place(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "config.json"
    file.write_text("{}")
    wanted = {"run/bus": str(tmp_path / "run/bus"), "/r": "/r", "~/bus": "/h/bus"}[given]
    environ = {"HOME": "/h", "AGENTBUS_RUNTIME_DIR": given}
    assert surroundings(load(str(file)), environ) == {"HOME": "/h", "AGENTBUS_RUNTIME_DIR": wanted}


def test_without_the_variable_none_is_made_up(tmp_path):
    file = tmp_path / "config.json"
    file.write_text("{}")
    assert surroundings(load(str(file)), {"HOME": "/h"}) == {"HOME": "/h"}
