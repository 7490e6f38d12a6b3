"""What a starting daemon says, and what it is told of its surroundings."""

from __future__ import annotations

import pytest

from agentbus.client.start import Report, clean, understand
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
